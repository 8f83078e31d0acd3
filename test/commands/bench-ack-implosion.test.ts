/**
 * The benchmark of acknowledgements with few members: its claims are of counts in virtual time, and the same each time.
 *
 * @module-tag long
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { coterie } from "../e2e/cluster-under-test.ts";

interface Figures {
  readonly method: string;
  readonly nodes: number;
  readonly acknowledgements: number;
  readonly longestQueue: number;
  readonly doneAfter: number;
}

test("coterie bench ack-implosion: as many acknowledgements as other members, one after the other; none where all speak", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coterie-ack-implosion-"));
  const file = join(folder, "ack-implosion.svg");
  const words = ["--nodes", "4,16", "--processing", "0.5", "--json", "--picture", file];
  const { code, stdout, stderr } = await coterie("bench", "ack-implosion", ...words);
  expect(code, stderr).toBe(0);
  const figures = JSON.parse(stdout) as Figures[];
  const of = (method: string, nodes: number) =>
    figures.find((each) => each.method.startsWith(method) && each.nodes === nodes);
  // Half a message time at each end, one on the way there and one back; then half a one for each that has queued.
  expect(of("basic-multicast", 16)).toMatchObject({ acknowledgements: 15, longestQueue: 14, doneAfter: 3 + 15 / 2 });
  expect(of("basic-multicast", 4)).toMatchObject({ acknowledgements: 3, longestQueue: 2, doneAfter: 3 + 3 / 2 });
  expect(of("reliable-multicast", 16)?.acknowledgements).toBe(15);
  expect(of("ip-multicast, all speak", 16)).toMatchObject({ acknowledgements: 0, longestQueue: 0, doneAfter: 0 });
  expect(readFileSync(file, "utf8")).toMatch(/^<svg .*acknowledgements at the sender.*<\/svg>\n$/s);
  rmSync(folder, { recursive: true });
});

test("for people: a row for each figure, a column for each N", async () => {
  const { code, stdout } = await coterie("bench", "ack-implosion", "--nodes", "3,64");
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^ip-multicast, all speak\n {2}N .*\n.* 0 +0\n.* 0 +0\n {2}done after, message times +– +–\n\ndone after: /m,
  );
  expect(stdout).toMatch(/^basic-multicast, acknowledged\n {2}N +3 +64\n {2}acknowledgements at the sender +2 +63\n/m);
});

test.each([
  [["--nodes", "1"], "expected --nodes to be whole numbers from 2 to 10000, such as 3,7,16, got 1"],
  [["--processing", "x"], "expected --processing to be from 0 to 100, got x"],
])("coterie bench ack-implosion %s is refused", async (words, sentence) => {
  const { code, stderr } = await coterie("bench", "ack-implosion", ...words);
  expect(code).toBe(2);
  expect(stderr).toContain(sentence);
});

test("coterie bench ack-implosion --help says what it takes", async () => {
  const { code, stdout } = await coterie("bench", "ack-implosion", "--help");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Usage: coterie bench ack-implosion \[options\]\n\nOptions:\n {2}--/);
});
