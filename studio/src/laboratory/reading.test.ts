import { describe, expect, it } from "vitest";
import { textOf } from "./reading.ts";

const chosen = (blob: Blob) => ({
  name: "live.jsonl",
  size: blob.size,
  slice: (from: number, to: number) => blob.slice(from, to),
});

describe("a chosen file", () => {
  it("is read up to a limit", async () => {
    const file = chosen(new Blob(["0123456789"]));
    expect(await textOf(file, 100)).toBe("0123456789");
    expect(await textOf(file, 4)).toBe("0123");
  });

  it("that a program still writes is refused with a way to open it", async () => {
    const blob = new Blob(["0"]);
    const text = () => Promise.reject(new DOMException("typically due to permission problems", "NotReadableError"));
    const file = { ...chosen(blob), slice: () => ({ ...blob, text }) as Blob };
    await expect(textOf(file, 100)).rejects.toThrow(
      /^live\.jsonl: the file changed after it was chosen, .* open a copy, or choose it again$/,
    );
  });
});
