/** Tests the checker of the soak test. It must detect every violation. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Sighting } from "./joined-process.ts";
import { Sightings } from "./sightings.ts";

const seen = (run: string, token: number, at: number, certain = true): Sighting => ({
  of: "lock",
  run,
  tenure: token,
  token,
  at,
  certain,
});

function disorder(...sightings: readonly Sighting[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), "coterie-sightings-"));
  const file = join(folder, "sightings");
  writeFileSync(file, sightings.map((each) => `${JSON.stringify(each)}\n`).join(""));
  const found = new Sightings(file).refresh().disorder();
  rmSync(folder, { recursive: true });
  return found;
}

test("accepts successive tenures with growing tokens, even if one was lost while its process was paused", () => {
  expect(
    disorder(seen("1.1", 1, 0), seen("1.1", 1, 5), seen("2.1", 2, 6), seen("1.1", 1, 7, false), seen("2.1", 2, 8)),
  ).toEqual([]);
});

test("detects two certain holders at once, and a token that falls, is repeated or returns", () => {
  expect(disorder(seen("1.1", 1, 0), seen("2.1", 2, 4), seen("1.1", 1, 5))).toEqual([
    "lock: 1.1 with token 1 and 2.1 with token 2 were certain together for 0.0 ms or more",
  ]);
  expect(disorder(seen("1.1", 7, 0), seen("2.1", 3, 4))).toEqual(["lock: token 3 of 2.1 came after 7 of 1.1"]);
  expect(disorder(seen("1.1", 7, 0), seen("2.1", 7, 4, false))).toEqual(["lock: token 7 was given to 1.1 and to 2.1"]);
  expect(disorder(seen("1.1", 7, 0, false), seen("1.1", 7, 4))).toEqual([
    "lock: 1.1 became certain of token 7 again after losing it",
  ]);
});
