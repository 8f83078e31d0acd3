import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { requireWritable } from "./files.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-written-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("does not change existing files or create missing ones", () => {
  const [there, absent] = [join(folder, "there"), join(folder, "absent")];
  writeFileSync(there, "what it holds");
  requireWritable({ "--trace": there, "--svg": absent, "--out": undefined });
  expect(readFileSync(there, "utf8")).toBe("what it holds");
  expect(existsSync(absent)).toBe(false);
});

it("names the option and the file that cannot be written", () => {
  const nowhere = join(folder, "none", "a.svg");
  const expected = (file: string, code: string) => `expected --svg to be a writable file, got "${file}" (${code})`;
  expect(() => requireWritable({ "--svg": nowhere })).toThrow(expected(nowhere, "ENOENT"));
  expect(() => requireWritable({ "--svg": folder })).toThrow(expected(folder, "EISDIR"));
});
