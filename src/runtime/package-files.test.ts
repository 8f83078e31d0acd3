import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { docsPage } from "./package-files.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const from = (folder: string): string => {
  vi.spyOn(process, "cwd").mockReturnValue(folder);
  return docsPage("operate/recovery.md");
};
afterEach(() => vi.restoreAllMocks());

test("a page is named by its path relative to the working directory, or absolute if far away", () => {
  expect(from(root)).toBe(join("docs", "operate", "recovery.md"));
  expect(from(join(root, "docs"))).toBe(join("operate", "recovery.md"));
  expect(from(join(root, "examples"))).toBe(join("..", "docs", "operate", "recovery.md"));
  expect(from(join(root, "examples", "far", "away"))).toBe(join(root, "docs", "operate", "recovery.md"));
});
