/** A journal that is written anew while it goes on. */
import { copyFileSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { durable, journalFolder, type Note, note, noteShape } from "../../../test/journal/journal-folder.ts";
import { watchedDisk } from "../../../test/journal/watched-disk.ts";
import type { Journal, Slot } from "./journal.ts";

const PATIENCE = { timeout: 60_000, interval: 5 };
const folder = journalFolder();
const limits = { rewriteFromBytes: 1_000 };
const LONG = "x".repeat(100);

/** What is copied from now on waits, until the function that is returned is called. */
function held(copying: ReturnType<typeof watchedDisk>["asked"]): () => void {
  let goOn = (): void => {};
  const isHeld = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  copying.mockImplementation((act) => isHeld.then(act));
  copying.mockClear();
  return () => goOn();
}

test("nobody waits for it: what is appended meanwhile is durable before it is done, and stands in the new file", async () => {
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

test("what was replaced while it was copied does not stay: it is written anew once more, though nobody writes", async () => {
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

test("a journal that is closed meanwhile leaves the old file as it is, and nothing beside it counts", async () => {
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

test("whatever is appended, replaced and forgotten, and whenever it crashes: what was durable is there, in order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(deed, { minLength: 40, maxLength: 120 }), async (deeds) => {
      folder.empty();
      const journal = await folder.open({ limits });
      await carriedOut(journal, deeds);
    }),
    { numRuns: 15 },
  );
});

/** Does all that, and holds what the journal says, and what stands in its file after each crash, against what it was given. */
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

/** In the file as it is, were the process gone now. */
async function standsIn(given: readonly Note[][]): Promise<void> {
  const copy = new (Object.getPrototypeOf(folder).constructor as new () => typeof folder)();
  copy.path = join(folder.path, "copy");
  copy.empty();
  copyFileSync(folder.file, copy.file);
  const journal = await copy.open();
  expect(given.map((_, slot) => journal.slot(`slot ${slot}`, noteShape).records)).toEqual(given);
  await journal.close();
}
