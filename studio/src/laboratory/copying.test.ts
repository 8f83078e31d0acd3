import { afterEach, expect, test, vi } from "vitest";
import { copied } from "./copying.ts";

afterEach(() => void vi.unstubAllGlobals());

test("what is copied is on the clipboard", async () => {
  const writeText = vi.fn<(text: string) => Promise<void>>(async () => {});
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  expect(await copied("a link")).toBe(true);
  expect(writeText).toHaveBeenCalledWith("a link");
});

test.each([
  ["that has no clipboard, as over plain HTTP", {}],
  ["that may not write to it", { clipboard: { writeText: () => Promise.reject(new Error("NotAllowedError")) } }],
])("a page %s knows that nothing was copied", async (_page, navigator) => {
  vi.stubGlobal("navigator", navigator);
  expect(await copied("a link")).toBe(false);
});
