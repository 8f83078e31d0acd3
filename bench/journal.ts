/**
 * Measures durable records per second: the journal, compared with a bare file that is written and synced in the same
 * groups with the same number of bytes. Both alternate in one directory. Prints medians and the ratio for each round.
 *
 *     npx coterie bench journal [--seconds 1 --rounds 7 --directory .]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { join, resolve } from "node:path";
import { natural, struct, text } from "../src/core/shape.ts";
import { openJournal } from "../src/runtime/journal/disk-journal.ts";
import { realPlatform } from "../src/runtime/platform/real.ts";
import { commandLine } from "./command-line.ts";
import { loadOf } from "./load.ts";
import { inTurns, OURS, printRows, Rows } from "./results.ts";

const { values, amount, whole } = commandLine("journal", {
  seconds: { such: "<s>", default: "1", help: "how long each measurement takes (default: 1)" },
  rounds: { such: "<n>", default: "7", help: "how many measurements of each, in turns (default: 7)" },
  directory: { such: "<dir>", default: ".", help: "on the disk that is measured (default: here)" },
});
const ms = amount("seconds", values.seconds, 60) * 1_000;
const rounds = whole("rounds", values.rounds, 1, 1_000);

const shape = struct({ term: natural, command: text(1_024) });
const record = { term: 1_234_567, command: "x".repeat(84) };
const RECORD_BYTES = 96;
const GROUPS = [1, 16, 256, 4_096];

/** Measures records per second. */
type Measure = (directory: string, group: number) => Promise<number>;

const journalled: Measure = async (directory, group) => {
  const onFailure = (error: Error): never => {
    throw error;
  };
  const options = { platform: realPlatform, owner: "bench", log: console, onFailure };
  const journal = await openJournal(join(directory, "journal"), options);
  const slot = journal.slot("records", shape);
  const { perSecond } = await loadOf(1, ms, () => {
    for (let i = 0; i < group; i++) slot.append(record);
    return new Promise<void>((done) => slot.whenDurable(done));
  });
  await journal.close();
  return group * perSecond;
};

const bare: Measure = async (directory, group) => {
  const file = await open(join(directory, "bare"), "w");
  const bytes = Buffer.alloc(RECORD_BYTES * group, "x");
  const { perSecond } = await loadOf(1, ms, async () => {
    await file.write(bytes);
    await file.datasync();
  });
  await file.close();
  return group * perSecond;
};

async function inNewDirectory(measure: Measure, group: number): Promise<number> {
  const directory = mkdtempSync(resolve(values.directory, "bench-journal-"));
  try {
    return await measure(directory, group);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const rows = new Rows("journal");
for (const group of GROUPS) {
  const found = await inTurns(
    rounds,
    { "a bare file": () => inNewDirectory(bare, group), [OURS]: () => inNewDirectory(journalled, group) },
    { about: `${group} at a time: `, warmUps: 0 },
  );
  rows.addRounds(`${group} at a time`, "/s", found);
}
printRows(`records of ${RECORD_BYTES} bytes, confirmed by fdatasync`, rows.all);
