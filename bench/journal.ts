/**
 * Records per second that are confirmed durable: the journal beside a bare file that is written and synced in the same
 * groups, with as many bytes. Both in turns in one directory; medians, and the ratios round by round.
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
import { spread } from "./figures.ts";

const { values } = commandLine("journal", {
  seconds: { such: "<s>", default: "1", help: "how long each measurement takes (default: 1)" },
  rounds: { such: "<n>", default: "7", help: "how many measurements of each, in turns (default: 7)" },
  directory: { such: "<dir>", default: ".", help: "on the disk that is measured (default: here)" },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);

const shape = struct({ term: natural, command: text(1_024) });
const record = { term: 1_234_567, command: "x".repeat(84) };
const RECORD_BYTES = 96;
const groups = [1, 16, 256, 4_096];

/** Records per second. */
type Measure = (directory: string, group: number) => Promise<number>;

async function perSecond(group: number, confirm: () => Promise<void>): Promise<number> {
  const began = performance.now();
  let records = 0;
  while (performance.now() - began < seconds * 1_000) {
    await confirm();
    records += group;
  }
  return (records / (performance.now() - began)) * 1_000;
}

const journalled: Measure = async (directory, group) => {
  const onFailure = (error: Error): never => {
    throw error;
  };
  const journal = await openJournal(join(directory, "journal"), {
    platform: realPlatform,
    owner: "bench",
    log: console,
    onFailure,
  });
  const slot = journal.slot("records", shape);
  const figure = await perSecond(group, () => {
    for (let i = 0; i < group; i++) slot.append(record);
    return new Promise((done) => slot.whenDurable(done));
  });
  await journal.close();
  return figure;
};

const bare: Measure = async (directory, group) => {
  const file = await open(join(directory, "bare"), "w");
  const bytes = Buffer.alloc(RECORD_BYTES * group, "x");
  const figure = await perSecond(group, async () => {
    await file.write(bytes);
    await file.datasync();
  });
  await file.close();
  return figure;
};

async function inNewDirectory(measure: Measure, group: number): Promise<number> {
  const directory = mkdtempSync(resolve(values.directory, "bench-journal-"));
  try {
    return await measure(directory, group);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

console.log(`records of ${RECORD_BYTES} bytes per second, confirmed by fdatasync, median [least–most] of ${rounds}`);
for (const group of groups) {
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    theirs.push(await inNewDirectory(bare, group));
    ours.push(await inNewDirectory(journalled, group));
  }
  const ratios = ours.map((figure, i) => figure / (theirs[i] as number));
  console.log(
    `\n${group} at a time\n  bare write and sync  ${spread(theirs, 0)}\n  journal              ${spread(ours, 0)}\n  journal / bare       ${spread(ratios, 2)}`,
  );
}
