/** Checks that a journal can be rewritten while it is in use. */

import { copyFileSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { durable, journalFolder, type Note, note, noteShape } from "../../../test/journal/journal-folder.ts";
import { watchedDisk } from "../../../test/journal/watched-disk.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { Disk, DiskFile } from "../platform/platform.ts";
import { realPlatform } from "../platform/real.ts";
import type { Journal, Slot } from "./journal.ts";

const folder = journalFolder();
const limits = { rewriteFromBytes: 1_000 };
const LONG = "x".repeat(100);

/** Blocks copying from now on, until the returned function is called. */
function held(copying: ReturnType<typeof watchedDisk>["asked"]): () => void {
  let goOn = (): void => {};
  const isHeld = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  copying.mockImplementation((act) => isHeld.then(act));
  copying.mockClear();
  return () => goOn();
}

test("does not block writers: records appended meanwhile are durable before it ends, and in the new file", async () => {
  const { asked: copying, platform } = watchedDisk("write");
  const journal = await folder.open({ platform, limits });
  const slot = journal.slot("notes", noteShape);
  await durable(slot);
  const goOn = held(copying);
  for (let i = 0; i < 20; i++) slot.compact([note(i, LONG)]);
  await durable(slot);
  await vi.waitFor(() => expect(copying).toHaveBeenCalled(), PATIENCE);
  slot.append(note(20));
  await durable(slot);
  slot.compact([note(21)]);
  const late = journal.slot("late", noteShape);
  late.append(note(22));
  await durable(late);
  const before = statSync(folder.file).ino;
  goOn();
  await vi.waitFor(() => expect(statSync(folder.file).ino).not.toBe(before), PATIENCE);
  slot.append(note(23));
  await durable(slot);
  expect(slot.records).toEqual([note(21), note(23)]);
  expect(late.records).toEqual([note(22)]);
  await journal.close();
  const later = await folder.open();
  expect(later.slot("notes", noteShape).records).toEqual([note(21), note(23)]);
  expect(later.slot("late", noteShape).records).toEqual([note(22)]);
  expect(statSync(folder.file).size).toBeLessThan(1_000);
});

test("drops records replaced during the copy: the journal is rewritten once more, even without writes", async () => {
  const { asked: copying, platform } = watchedDisk("write");
  const journal = await folder.open({ platform, limits });
  const slot = journal.slot("notes", noteShape);
  await durable(slot);
  const goOn = held(copying);
  for (let i = 0; i < 20; i++) slot.compact([note(i, LONG)]);
  await vi.waitFor(() => expect(copying).toHaveBeenCalled(), PATIENCE);
  for (let i = 0; i < 200; i++) slot.compact([note(i, LONG)]);
  await durable(slot);
  goOn();
  await vi.waitFor(() => expect(statSync(folder.file).size).toBeLessThan(limits.rewriteFromBytes), PATIENCE);
  await journal.close();
  expect(await folder.session()).toEqual([note(199, LONG)]);
});

test("a journal that is closed meanwhile keeps the old file, and the copy is ignored", async () => {
  const { asked: copying, platform } = watchedDisk("write");
  const journal = await folder.open({ platform, limits });
  const slot = journal.slot("notes", noteShape);
  await durable(slot);
  copying.mockImplementation((act) => new Promise((resolve) => setTimeout(() => resolve(act()), 20)));
  copying.mockClear();
  for (let i = 0; i < 20; i++) slot.compact([note(i, LONG)]);
  await vi.waitFor(() => expect(copying).toHaveBeenCalled(), PATIENCE);
  await journal.close();
  expect(folder.failures).toEqual([]);
  expect(await folder.session()).toEqual([note(19, LONG)]);
  expect(existsSync(join(folder.path, "journal.rewritten"))).toBe(false);
});

/** A disk on which some calls for the copy, or its rename, fail while `isOn` is true. The clock can be advanced. */
function failingCopies(at: "create" | "write" | "datasync" | "sync" | "rename" | "close", code = "ENOSPC") {
  const fault = { isOn: false, copies: 0, aheadMs: 0 };
  const refuse = (): Promise<never> => Promise.reject(Object.assign(new Error(`${code}: no`), { code, syscall: at }));
  const { disk, clock } = realPlatform;
  const failing = (file: DiskFile): DiskFile => {
    if (at === "create" || at === "rename") return file;
    const act: (...words: never[]) => Promise<void> = file[at];
    const isDoneFirst = at === "close";
    return {
      ...file,
      [at]: async (...words: never[]) => {
        if (!fault.isOn || isDoneFirst) await act(...words);
        if (fault.isOn) await refuse();
      },
    };
  };
  const claim: Disk["claim"] = async (path) => {
    const claimed = await disk.claim(path);
    return {
      ...claimed,
      create: (name) => {
        fault.copies += 1;
        return fault.isOn && at === "create" ? refuse() : claimed.create(name).then(failing);
      },
      rename: (from, to) => (fault.isOn && at === "rename" ? refuse() : claimed.rename(from, to)),
    };
  };
  const later = { ...clock, now: () => clock.now() + fault.aheadMs };
  return { fault, platform: { ...realPlatform, clock: later, disk: { ...disk, claim } } };
}

test("a new file is durable before it becomes the journal, at the first start and at a rewrite", async () => {
  const done: string[] = [];
  const { disk } = realPlatform;
  const claim: Disk["claim"] = async (path) => {
    const claimed = await disk.claim(path);
    const create = async (name: string): Promise<DiskFile> => {
      const file = await claimed.create(name);
      const note = (what: string, act: () => Promise<void>): Promise<void> => {
        if (done.at(-1) !== what) done.push(what);
        return act();
      };
      return {
        ...file,
        write: (bytes, at) => note("write", () => file.write(bytes, at)),
        sync: () => note("sync", () => file.sync()),
      };
    };
    const rename = (from: string, to: string): Promise<void> => {
      done.push("rename");
      return claimed.rename(from, to);
    };
    return { ...claimed, create, rename };
  };
  const journal = await folder.open({ platform: { ...realPlatform, disk: { ...disk, claim } }, limits });
  expect(done.splice(0)).toEqual(["write", "sync", "rename"]);
  const slot = journal.slot("notes", noteShape);
  for (let i = 0; i < 20; i++) slot.compact([note(i, LONG)]);
  await vi.waitFor(() => expect(done).toContain("rename"), PATIENCE);
  expect(done.slice(0, done.indexOf("rename") + 1)).toEqual(["write", "sync", "rename"]);
  await journal.close();
});

describe("a copy that fails", () => {
  const replaceAgain = async (slot: Slot<Note>, number: number): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      slot.compact([note(number, LONG)]);
      await durable(slot);
    }
  };

  test.each([
    ["create", "EACCES", "permission denied"],
    ["write", "ENOSPC", "the disk is full"],
    ["datasync", "EIO", "the disk failed"],
    ["sync", "EDQUOT", "the user's disk quota is exceeded"],
  ] as const)(
    "in %s is removed and does not stop the member, which warns once and retries later",
    async (at, code, why) => {
      const { fault, platform } = failingCopies(at, code);
      const journal = await folder.open({ platform, limits });
      const slot = journal.slot("notes", noteShape);
      await durable(slot);
      fault.isOn = true;
      fault.copies = 0;
      await replaceAgain(slot, 1);
      await vi.waitFor(() => expect(folder.warnings).toHaveLength(1), PATIENCE);
      expect(folder.warnings[0]).toBe(
        `cannot compact the journal ${folder.file}: ${why} (${code}). The member keeps using the uncompacted journal, which continues to grow, and retries every 60 s. Free disk space if the disk is full`,
      );
      await vi.waitFor(() => expect(existsSync(join(folder.path, "journal.rewritten"))).toBe(false), PATIENCE);
      await replaceAgain(slot, 2);
      expect(fault.copies).toBe(1);
      fault.aheadMs += 60_000;
      await replaceAgain(slot, 3);
      await vi.waitFor(() => expect(fault.copies).toBe(2), PATIENCE);
      const before = statSync(folder.file).size;
      expect(before).toBeGreaterThan(60 * LONG.length);
      fault.isOn = false;
      fault.aheadMs += 60_000;
      await vi.waitFor(async () => {
        slot.compact([note(4, LONG)]);
        await durable(slot);
        expect(statSync(folder.file).size).toBeLessThan(before);
      }, PATIENCE);
      await journal.close();
      expect(folder.warnings).toHaveLength(1);
      expect(folder.failures).toEqual([]);
      expect(await folder.session()).toEqual([note(4, LONG)]);
    },
  );

  test("does not stop the member after a restart either", async () => {
    for (const number of [1, 2, 3]) {
      const { fault, platform } = failingCopies("write");
      const journal = await folder.open({ platform, limits });
      fault.isOn = true;
      const slot = journal.slot("notes", noteShape);
      await replaceAgain(slot, number);
      await vi.waitFor(() => expect(folder.warnings).toHaveLength(number), PATIENCE);
      await journal.close();
    }
    expect(folder.failures).toEqual([]);
    expect(await folder.session()).toEqual([note(3, LONG)]);
  });

  test("in rename stops the member, because it is unknown which file is the journal", async () => {
    const { fault, platform } = failingCopies("rename", "EIO");
    const journal = await folder.open({ platform, limits });
    const slot = journal.slot("notes", noteShape);
    await durable(slot);
    fault.isOn = true;
    for (let i = 0; i < 20; i++) slot.compact([note(i, LONG)]);
    await vi.waitFor(() => expect(folder.failures).toHaveLength(1), PATIENCE);
    expect(folder.failures[0]).toMatchObject({ code: "cannot-write-journal" });
    const confirmed = vi.fn();
    slot.append(note(20));
    slot.whenDurable(confirmed);
    await journal.close();
    expect(confirmed).not.toHaveBeenCalled();
  });

  test("while closing the replaced file does not stop the member", async () => {
    const { fault, platform } = failingCopies("close", "EIO");
    const journal = await folder.open({ platform, limits });
    const slot = journal.slot("notes", noteShape);
    await durable(slot);
    fault.isOn = true;
    fault.copies = 0;
    await vi.waitFor(async () => {
      await replaceAgain(slot, 1);
      expect(fault.copies).toBeGreaterThan(1); // The first copy has become the journal.
    }, PATIENCE);
    slot.append(note(2));
    await durable(slot);
    fault.isOn = false;
    await journal.close();
    expect(folder.failures).toEqual([]);
    expect(await folder.session()).toEqual([note(1, LONG), note(2)]);
  });
});

type Deed =
  | { readonly type: "append" | "compact"; readonly slot: number; readonly words: string }
  | { readonly type: "forget"; readonly slot: number }
  | { readonly type: "await" | "crash" };

const words = fc.string({ minLength: 20, maxLength: 200 });
const slotNumber = fc.nat({ max: 2 });
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant("append" as const), slot: slotNumber, words }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("compact" as const), slot: slotNumber, words }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("forget" as const), slot: slotNumber }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constantFrom("await" as const, "crash" as const) }) },
);

test("after any appends, compactions, deletions and crashes, durable records are there, in order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(deed, { minLength: 40, maxLength: 120 }), async (deeds) => {
      folder.empty();
      const journal = await folder.open({ limits });
      await carriedOut(journal, deeds);
    }),
    { numRuns: 15 },
  );
});

/**
 * Performs all actions, and compares both the journal's content and, after each crash, its file with the expected
 * records.
 */
async function carriedOut(journal: Journal, deeds: readonly Deed[]): Promise<void> {
  const open = [0, 1, 2].map((number) => journal.slot(`slot ${number}`, noteShape));
  const given: Note[][] = [[], [], []];
  let number = 0;
  for (const each of deeds) {
    if (!("slot" in each)) {
      await durable(open[0] as Slot<Note>);
      if (each.type === "crash") await standsIn(given);
      continue;
    }
    const [slot, notes] = [open[each.slot] as Slot<Note>, given[each.slot] as Note[]];
    if (!("words" in each)) {
      slot.release();
      journal.forget(`slot ${each.slot}`);
      open[each.slot] = journal.slot(`slot ${each.slot}`, noteShape);
      given[each.slot] = [];
      continue;
    }
    number += 1;
    const record = note(number, each.words);
    if (each.type === "append") slot.append(record);
    else slot.compact([record]);
    given[each.slot] = each.type === "append" ? [...notes, record] : [record];
  }
  expect(open.map(({ records }) => records)).toEqual(given);
  await journal.close();
  await standsIn(given);
}

/** Compares the content that the file would have if the process stopped now. */
async function standsIn(given: readonly Note[][]): Promise<void> {
  const copy = new (Object.getPrototypeOf(folder).constructor as new () => typeof folder)();
  copy.path = join(folder.path, "copy");
  copy.empty();
  copyFileSync(folder.file, copy.file);
  const journal = await copy.open();
  expect(given.map((_, slot) => journal.slot(`slot ${slot}`, noteShape).records)).toEqual(given);
  await journal.close();
}
