/** Checks a journal that was not closed, or that was modified by another program. */
import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { durable, journalFolder, type Note, note } from "../../../test/journal/journal-folder.ts";
import { EnvironmentError } from "../../core/errors.ts";
import { HEADER_BYTES, scan } from "./batches.ts";
import type { Slot } from "./journal.ts";

const folder = journalFolder();

describe("a journal that was not closed", () => {
  const three = async (slot: Slot<Note>): Promise<void> => {
    for (const number of [1, 2, 3]) {
      slot.append(note(number));
      await durable(slot);
    }
  };

  test("contains all confirmed records", async () => {
    await folder.crash(three);
    expect(await folder.session()).toEqual([1, 2, 3].map((number) => note(number)));
    expect(folder.warnings).toEqual([]);
  });

  test("is cut at a torn last write, which is logged", async () => {
    await folder.crash(three);
    const { size } = statSync(folder.file);
    appendFileSync(
      folder.file,
      Buffer.concat([readFileSync(folder.file).subarray(HEADER_BYTES, HEADER_BYTES + 20), Buffer.alloc(30)]),
    );
    expect(await folder.session()).toHaveLength(3);
    expect(folder.warnings).toEqual([`the journal ${folder.file} ended with an unconfirmed write: removed 50 bytes`]);
    expect(await folder.session()).toHaveLength(3);
    expect(folder.warnings).toHaveLength(1);
    expect(statSync(folder.file).size).toBeGreaterThan(size); // The file includes the marks for opening and closing.
  });

  test("is rejected if it is damaged before a readable batch", async () => {
    await folder.crash(three);
    folder.flip(HEADER_BYTES + 20);
    await expect(folder.open()).rejects.toThrow(
      new RegExp(
        `^the journal ${folder.file} is damaged at byte ${HEADER_BYTES}: it is unreadable there, but readable again from byte \\d+ on\\. The node does not start, because it might break promises that it has recorded\\. Treat the file as lost: for a member started with join\\(\\), .coterie member replace. makes a new folder\\. Never restore an older copy`,
      ),
    );
    await expect(folder.open()).rejects.toThrow(EnvironmentError);
    folder.flip(HEADER_BYTES + 20);
    expect(await folder.session()).toHaveLength(3);
  });

  test("is rejected if a write in the middle is missing", async () => {
    await folder.crash(three);
    const bytes = readFileSync(folder.file);
    const first = 14 + bytes.readUInt32LE(HEADER_BYTES + 4);
    writeFileSync(folder.file, Buffer.concat([bytes.subarray(0, HEADER_BYTES), bytes.subarray(HEADER_BYTES + first)]));
    await expect(folder.open()).rejects.toThrow(`damaged at byte ${HEADER_BYTES}: write 2 follows write 0`);
  });

  test("ignores leftovers of an earlier file on the disk", async () => {
    await folder.crash(three);
    const older = readFileSync(folder.file).subarray(HEADER_BYTES);
    rmSync(folder.file);
    await folder.crash((slot) => durable(slot));
    appendFileSync(folder.file, older);
    expect(await folder.session()).toEqual([]);
    expect(folder.warnings).toHaveLength(1);
  });
});

test("after a clean close nothing counts as torn: damage anywhere is rejected", async () => {
  await folder.session((slot) => slot.append(note(1, "closed")));
  const bytes = readFileSync(folder.file);
  const MARK_BYTES = 14;
  for (let at = 0; at < bytes.length - MARK_BYTES; at++)
    for (let bit = 0; bit < 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[at] = (bytes[at] as number) ^ (1 << bit);
      expect(() => scan(flipped, folder.file), `bit ${bit} of byte ${at}`).toThrow("is damaged");
    }
  expect(scan(bytes, folder.file).entries).toHaveLength(4); // Two declarations, the owner, and the note.
});

test("after any cut or flip: a prefix with everything confirmed before it, or a rejection", async () => {
  const step = fc.record({ records: fc.array(fc.string({ maxLength: 30 }), { maxLength: 4 }), compacts: fc.boolean() });
  const harm = fc.record({ where: fc.double({ min: 0, max: 1, noNaN: true }), cuts: fc.boolean(), bit: fc.nat(7) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), harm, async (steps, { where, cuts, bit }) => {
      folder.empty();
      /** For each size of the file, the slot's records at that time, all of which were confirmed. */
      const confirmed: { bytes: number; records: readonly Note[] }[] = [];
      await folder.crash(async (slot) => {
        await durable(slot);
        confirmed.push({ bytes: statSync(folder.file).size, records: [] });
        for (const { records, compacts } of steps) {
          for (const words of records) slot.append(note(confirmed.length, words));
          if (compacts) slot.compact([note(confirmed.length, "in short")]);
          await durable(slot);
          confirmed.push({ bytes: statSync(folder.file).size, records: slot.records });
        }
      });
      const bytes = readFileSync(folder.file);
      const at = Math.min(Math.floor(where * bytes.length), bytes.length - 1);
      bytes[at] = (bytes[at] as number) ^ (1 << bit);
      writeFileSync(folder.file, cuts ? bytes.subarray(0, at) : bytes);
      const got = await folder.session().catch((error: unknown) => error);
      const before = confirmed.findLast((each) => each.bytes <= at)?.records ?? [];
      if (got instanceof Error) expect(got).toMatchObject({ code: "damaged-journal" });
      else expect(got).toEqual(before);
    }),
    { numRuns: 60 },
  );
});
