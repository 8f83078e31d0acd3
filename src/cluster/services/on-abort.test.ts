import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { onAbort } from "./on-abort.ts";

describe("waiting for a signal", () => {
  test("uses one listener for any number of waits, and none once all have ended", () => {
    const { signal } = new AbortController();
    const forget = Array.from({ length: 20 }, () => onAbort(signal, () => {}));
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    for (const each of forget) {
      each();
      each();
    }
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    onAbort(signal, () => {});
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
  });

  test("calls each waiting listener once, and none that was removed, even during the calls", () => {
    const controller = new AbortController();
    const told: number[] = [];
    const forget = [1, 2, 3, 4].map((number) =>
      onAbort(controller.signal, () => {
        told.push(number);
        if (number === 2) forget[2]?.();
      }),
    );
    forget[0]?.();
    controller.abort();
    expect(told).toEqual([2, 4]);
  });

  test("does nothing without a signal", () => {
    expect(onAbort(undefined, () => {})()).toBe(undefined);
  });
});
