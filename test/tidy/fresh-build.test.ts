import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { staleBuild } from "../fresh-build.ts";

const root = mkdtempSync(join(tmpdir(), "coterie-build-"));
afterAll(() => rmSync(root, { recursive: true }));

/** Writes a file whose modification time is this many seconds after a fixed moment. */
function write(file: string, at: number): void {
  const path = join(root, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "");
  utimesSync(path, 1_000 + at, 1_000 + at);
}

beforeAll(() => {
  for (const source of ["src/core/a.ts", "bench/b.ts", "studio/src/c.svelte"]) write(source, 0);
  for (const built of ["build/bench/check.js", "dist/studio/index.html"]) write(built, 1);
});

it("reports a missing build, and the command to run", () => {
  expect(staleBuild(root)).toBe("expected dist/cli/coterie.js, which is not there: run `npm run build`");
});

it("accepts a build that is newer than its sources, even if tests have changed", () => {
  write("dist/cli/coterie.js", 1);
  write("src/core/a.test.ts", 2);
  expect(staleBuild(root)).toBeNull();
});

it.each([
  ["src/core/a.ts", "dist/cli/coterie.js"],
  ["bench/b.ts", "build/bench/check.js"],
  ["studio/src/c.svelte", "dist/studio/index.html"],
])("reports that %s has changed since %s was built, and the command to run", (source, built) => {
  write(source, 2);
  expect(staleBuild(root)).toBe(
    `expected ${built} to be younger than its sources, but ${source} has changed since: run \`npm run build\``,
  );
  write(source, 0);
});
