/** Checks `coterie trace`: it converts the file that `coterie sim` writes to every format, and rejects other files. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { coterie } from "./run-here.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-trace-"));
const file = join(folder, "run.jsonl");
let lines: readonly string[] = [];

beforeAll(async () => {
  const { code, stderr } = await coterie(
    ...["sim", "bully", "--nodes", "8", "--crash", "7", "--call", "4", "--seed", "1", "--trace", file],
  );
  expect(code, stderr).toBe(0);
  lines = readFileSync(file, "utf8").trimEnd().split("\n");
});
afterAll(() => rmSync(folder, { recursive: true }));

async function trace(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await coterie("trace", file, ...words);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

test("the view for the terminal has a column per node", async () => {
  expect(await trace()).toMatch(/^ +ms +0 +1 +2 +3 +4 +5 +6 +7\n(?:.*\n)+.*times out: answer;.*\n/);
});

test("logs, pictures, figures, and formats of other tools", async () => {
  const forms: readonly (readonly [string, RegExp])[] = [
    ["--log", /^ +0\.0 {2}node 0 {2}starts\n/],
    ["--svg", /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" .*<\/svg>\n$/s],
    ["--shiviz", /^\(\?<event>\.\*\)\\n\(\?<host>\\S\*\) \(\?<clock>\{\.\*\}\)\n\n/],
    ["--stats", /\nmessages: 15 sent, 12 received, 3 lost \(3 crashed\)/],
  ];
  await Promise.all(forms.map(async ([form, expected]) => expect(await trace(form)).toMatch(expected)));
});

test("--json is the file again, and a part of it keeps its clocks", async () => {
  expect(await trace("--json")).toBe(readFileSync(file, "utf8"));
  const part = (await trace("--json", "--from", "150")).trimEnd().split("\n");
  expect(part.length).toBeLessThan(lines.length);
  for (const line of part) expect(lines).toContain(line);
});

test("--stats --json counts the same as the simulator", async () => {
  const { stdout } = await coterie(
    "sim",
    "bully",
    "--nodes",
    "8",
    "--crash",
    "7",
    "--call",
    "4",
    "--seed",
    "1",
    "--json",
  );
  const { messages } = JSON.parse(stdout) as { messages: { total: number } };
  expect(JSON.parse(await trace("--stats", "--json"))).toMatchObject({ messages: { sent: messages.total } });
});

test("--clocks adds a vector clock to each line", async () => {
  expect(await trace("--log", "--clocks")).toMatch(/node 4 {2}receives command call {2}\[0 0 0 0 2 0 0 0\]\n/);
  expect(await trace("--clocks")).toContain("[0 0 0 0 2 2 0 0] election from 4;");
  const { code, stderr } = await coterie("trace", file, "--shiviz", "--clocks");
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("expected --clocks with --svg") });
});

test("the picture in the docs is up to date", async () => {
  const picture = new URL("../../docs/images/trace-bully.svg", import.meta.url);
  const drawn = await trace("--svg");
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(picture, drawn);
  expect(drawn).toBe(readFileSync(picture, "utf8"));
});

test("--png --out", async () => {
  const picture = join(folder, "run.png");
  await trace("--png", "--out", picture);
  expect(readFileSync(picture).subarray(1, 4).toString()).toBe("PNG");
});

test("a truncated file is read up to the cut, with a warning", async () => {
  const torn = join(folder, "torn.jsonl");
  writeFileSync(torn, lines.join("\n").slice(0, -5));
  const { code, stdout, stderr } = await coterie("trace", torn, "--json");
  expect(code).toBe(0);
  expect(stdout.trimEnd().split("\n")).toEqual(lines.slice(0, -1));
  expect(stderr).toBe("coterie: ignored the last line, which is incomplete because the recorder was killed\n");
});

const changed = (number: number, change: (line: string) => string): string =>
  `${lines.map((line, index) => (index === number - 1 ? change(line) : line)).join("\n")}\n`;

test("a file that is not a trace is rejected in one sentence with line and field", async () => {
  const wrongs: readonly (readonly [string, string])[] = [
    [
      changed(7, (line) => line.replace(/"at":[\d.]+/, '"at":"x"')),
      'line 7: expected at to be a finite number, got "x"',
    ],
    [changed(5, () => "{"), 'line 5: expected the entry to be an object, got "{"'],
    ["", "line 1: expected the header of a trace, got an empty file"],
  ];
  await Promise.all(
    wrongs.map(async ([text, sentence], index) => {
      const wrong = join(folder, `wrong-${index}.jsonl`);
      writeFileSync(wrong, text);
      const { code, stdout, stderr } = await coterie("trace", wrong);
      expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: `coterie: ${wrong}: ${sentence}\n` });
    }),
  );
});

test("invalid arguments are rejected", async () => {
  const refusals: readonly (readonly [string, string])[] = [
    ["--svg --png", "expected --svg or --png, got both"],
    ["--stats --until 500", "expected --stats to be absent with --until, which replays the whole run"],
    ["--check --until 500 --hide beat", "expected --hide to be absent with --check, which replays the whole run"],
    ["--width 900", "expected --width with --svg or --png"],
    ["--from soon", 'expected --from to be a time in milliseconds, got "soon"'],
    ["--from 9 --to 3", "expected --to to be at least --from, 9, got 3"],
    ["--nodes 1;2", 'expected --nodes to be a list such as 0,2,5, got "1;2"'],
  ];
  await Promise.all(
    refusals.map(async ([words, sentence]) => {
      const { code, stderr } = await coterie("trace", file, ...words.split(" "));
      expect({ words, code, stderr }).toEqual({ words, code: 2, stderr: `coterie: ${sentence}\n` });
    }),
  );
});
