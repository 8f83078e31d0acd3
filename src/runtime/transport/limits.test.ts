import { describe, expect, test } from "vitest";
import { UsageError } from "../../core/errors.ts";
import { defaultLimits, limitsWith } from "./limits.ts";

describe("limits", () => {
  test("are the given ones, with defaults for the rest", () => {
    expect(limitsWith({})).toEqual(defaultLimits);
    expect(limitsWith({ maxFrameBytes: 4_096, maxStrangers: 1 })).toEqual({
      ...defaultLimits,
      maxFrameBytes: 4_096,
      maxStrangers: 1,
    });
  });

  test("leave room for messages in a frame", () => {
    const asking = () => limitsWith({ maxFrameBytes: 4_095 });
    expect(asking).toThrow(UsageError);
    expect(asking).toThrow("expected limits.maxFrameBytes to be at least 4096, got 4095");
  });
});
