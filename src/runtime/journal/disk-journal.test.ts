import { appendFileSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { durable, journalFolder, type Note, note, noteShape } from "../../../test/journal/journal-folder.ts";
import { watchedDisk } from "../../../test/journal/watched-disk.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { natural, type Shape, text, variants } from "../../core/shape.ts";
import { newCounts } from "../metrics.ts";

const folder = journalFolder();
afterEach(() => void vi.restoreAllMocks());

/** Returns a function that throws a system error. */
const refused = (code: string, syscall: string) => () =>
  Promise.reject(Object.assign(new Error(`${code}: no`), { code, syscall }));

/** Blocks until `finish` is called. */
function held() {
  let finish: () => void = () => {};
  const act = (): Promise<void> =>
    new Promise((resolve) => {
      finish = resolve;
    });
  return { act, finish: () => finish() };
}

test("reserves room for repeated replacements at once, without copying as it grows", async () => {
  const journal = await folder.open();
  const slot = journal.slot("notes", noteShape);
  const long = Array.from({ length: 4_000 }, (_, at) => note(at, "x".repeat(900)));
  slot.compact(long);
  await durable(slot);
  const made = vi.spyOn(Buffer, "allocUnsafe");
  slot.compact(long);
  expect(made).toHaveBeenCalledOnce();
  await durable(slot);
  expect(slot.records).toEqual(long);
});

describe("group commit", () => {
  test("records of one tick, from all slots, share one sync; records during it share the next", async () => {
    const { asked: sync, platform } = watchedDisk("writeDurably");
    const journal = await folder.open({ platform });
    const [left, right] = [journal.slot("left", noteShape), journal.slot("right", noteShape)];
    await durable(left);
    sync.mockClear();
    for (let i = 0; i < 100; i++) (i % 2 ? left : right).append(note(i));
    left.whenDurable(() => expect(sync).toHaveBeenCalledTimes(1));
    await vi.waitFor(() => expect(sync).toHaveBeenCalledTimes(1), { ...PATIENCE, interval: 1 });
    for (let i = 0; i < 100; i++) left.append(note(i));
    await durable(left);
    expect(sync.mock.calls.length).toBeLessThanOrEqual(2);
  });

  test("nothing is reported durable before the sync has returned", async () => {
    const { asked: sync, platform } = watchedDisk("writeDurably");
    const journal = await folder.open({ platform });
    const slot = journal.slot("notes", noteShape);
    await durable(slot);
    sync.mockClear();
    const { act, finish } = held();
    sync.mockImplementationOnce(act);
    const said = vi.fn();
    slot.append(note(1));
    slot.whenDurable(said);
    await vi.waitFor(() => expect(sync).toHaveBeenCalled(), PATIENCE);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(said).not.toHaveBeenCalled();
    finish();
    await vi.waitFor(() => expect(said).toHaveBeenCalledOnce(), PATIENCE);
  });
});

test("counts bytes and records written, and syncs with their durations", async () => {
  const { journal: counts } = newCounts();
  const journal = await folder.open({ counts });
  const slot = journal.slot("notes", noteShape);
  await durable(slot);
  const before = { ...counts, syncs: counts.syncing.count };
  const sizeBefore = statSync(folder.file).size;
  for (let i = 0; i < 100; i++) slot.append(note(i));
  await durable(slot);
  expect(counts.records - before.records).toBe(100);
  expect(counts.bytes).toBe(before.bytes + statSync(folder.file).size - sizeBefore);
  expect(counts.syncing.count - before.syncs).toBe(1);
  expect(counts.syncing.within.reduce((sum, more) => sum + more, 0)).toBe(counts.syncing.count);
});

describe("rewriting a journal", () => {
  const limits = { rewriteFromBytes: 2_000 };

  test("happens once most of it has been replaced, and keeps its content", async () => {
    const journal = await folder.open({ limits });
    const [busy, quiet] = [journal.slot("busy", noteShape), journal.slot("quiet", noteShape)];
    quiet.append(note(7, "stays"));
    for (let i = 0; i < 200; i++) {
      busy.compact([note(i, "x".repeat(100))]);
      if (i % 10 === 0) await durable(busy);
    }
    busy.append(note(1_000));
    await durable(busy);
    const isSmall = (): void => expect(statSync(folder.file).size).toBeLessThan(3 * limits.rewriteFromBytes);
    await vi.waitFor(isSmall, PATIENCE); // The journal is rewritten while other slots write.
    await journal.close();
    const later = await folder.open();
    expect(later.slot("busy", noteShape).records).toEqual([note(199, "x".repeat(100)), note(1_000)]);
    expect(later.slot("quiet", noteShape).records).toEqual([note(7, "stays")]);
  });

  test("does not happen while most of it is live, and at most once per doubling", async () => {
    const { asked, platform } = watchedDisk("sync");
    await folder.session(
      async (slot) => {
        for (let i = 0; i < 300; i++) {
          slot.append(note(i));
          if (i % 3 === 0) await durable(slot);
        }
      },
      { platform, limits },
    );
    // One call is for the new file, and there is at most one for each doubling from 2,000 to 10,000 bytes.
    expect(asked.mock.calls.length).toBeLessThanOrEqual(1 + 3);
    expect(await folder.session()).toHaveLength(300);
  });

  test("a copy that cannot be removed does not prevent opening", async () => {
    await folder.session((slot) => slot.append(note(1)));
    mkdirSync(join(folder.path, "journal.rewritten"));
    expect(await folder.session()).toEqual([note(1)]);
  });

  test("ignores a copy that a crash has interrupted", async () => {
    await folder.session((slot) => slot.append(note(1)));
    writeFileSync(join(folder.path, "journal.rewritten"), "half of it");
    expect(await folder.session()).toEqual([note(1)]);
  });
});

describe("shapes", () => {
  type Newer = Note | { type: "picture"; width: number };
  const newer: Shape<Newer> = variants<Newer>({
    picture: { width: natural },
    note: { number: natural, words: text(2_000) },
  });

  test("a later version reads records of an earlier one, and may write more variants", async () => {
    await folder.session((slot) => slot.append(note(1, "before")));
    const journal = await folder.open();
    const slot = journal.slot("notes", newer);
    expect(slot.records).toEqual([note(1, "before")]);
    slot.append({ type: "picture", width: 3 });
    await journal.close();
    expect((await folder.open()).slot("notes", newer).records).toEqual([
      note(1, "before"),
      { type: "picture", width: 3 },
    ]);
  });

  test("rejects records that do not fit", async () => {
    await folder.session((slot) => slot.append(note(1, "before")));
    const other = variants<{ type: "note"; number: number }>({ note: { number: natural } });
    const journal = await folder.open();
    expect(() => journal.slot("notes", other)).toThrow(
      `the journal ${folder.file} belongs to another protocol or version: expected record 1 of “notes”.words to be absent, got "before". Use another directory, or run the program that wrote it`,
    );
    expect(journal.slot("notes", noteShape).records).toEqual([note(1, "before")]);
  });
});

describe("is rejected", () => {
  test("the journal of another member", async () => {
    await folder.session();
    await expect(folder.open({ owner: "another node" })).rejects.toThrow(
      `expected the journal in ${folder.path} to be owned by another node, got "me": give each member its own directory`,
    );
  });

  test("a second writer, until the first has closed it", async () => {
    const journal = await folder.open();
    await expect(folder.open()).rejects.toMatchObject({ code: "journal-in-use" });
    await journal.close();
    await (await folder.open()).close();
  });

  test("a file in place of the directory, and a directory in place of the file", async () => {
    writeFileSync(join(folder.path, "taken"), "");
    await expect(folder.open({}, join(folder.path, "taken"))).rejects.toThrow("a file exists at this path (EEXIST)");
    await expect(folder.open({}, join(folder.path, "taken", "inside"))).rejects.toThrow(
      "a part of its path is a file (ENOTDIR)",
    );
    mkdirSync(folder.file);
    await expect(folder.open()).rejects.toThrow(`cannot open the journal ${folder.file}: it is a directory (EISDIR)`);
  });

  test("a file that is not a journal, or from a later version", async () => {
    writeFileSync(folder.file, "");
    await expect(folder.open()).rejects.toThrow("is damaged at byte 0: it has no journal header");
    writeFileSync(folder.file, "dear diary, today I have not been a journal");
    await expect(folder.open()).rejects.toThrow("it has no journal header");
  });

  test("more than its limits", async () => {
    const limits = { maxRecordBytes: 50, maxSlots: 2, maxFileBytes: 400 };
    const journal = await folder.open({ limits });
    const slot = journal.slot("notes", noteShape);
    expect(() => slot.append(note(1, "x".repeat(60)))).toThrow("expected a journal record to be at most 50 bytes");
    expect(() => journal.slot("one too many", noteShape)).toThrow("expected at most 2 slots");
    expect(() => journal.slot("", noteShape)).toThrow("expected the slot name to be 1 to 200 characters");
    for (let i = 0; i < 20; i++) slot.append(note(i));
    await vi.waitFor(() => expect(folder.failures).toHaveLength(1), PATIENCE);
    expect(folder.failures[0]).toMatchObject({ code: "journal-full" });
  });

  test("anything after the journal was closed", async () => {
    const journal = await folder.open();
    const slot = journal.slot("notes", noteShape);
    await journal.close();
    expect(() => slot.append(note(1))).toThrow("to be open, but it is closed");
    expect(() => journal.slot("other", noteShape)).toThrow("to be open, but it is closed");
  });
});

describe("a disk that fails", () => {
  test.each([
    ["write", "ENOSPC", "the disk is full"],
    ["fdatasync", "EIO", "the disk failed"],
  ])("in %s with %s: reports it once, and never confirms anything again", async (syscall, code, words) => {
    const { asked, platform } = watchedDisk("writeDurably");
    const journal = await folder.open({ platform });
    const slot = journal.slot("notes", noteShape);
    slot.append(note(1));
    await durable(slot);
    const confirmed = vi.fn();
    asked.mockImplementationOnce(refused(code, syscall));
    slot.append(note(2));
    slot.whenDurable(confirmed);
    await vi.waitFor(() => expect(folder.failures).toHaveLength(1), PATIENCE);
    expect(folder.failures[0]?.message).toBe(
      `cannot write the journal ${folder.file}: ${words} (${code}). The node stops, because unconfirmed writes may be lost`,
    );
    slot.append(note(3));
    slot.whenDurable(confirmed);
    await journal.close();
    expect(confirmed).not.toHaveBeenCalled();
    expect(folder.failures).toHaveLength(1);
    const [first, ...rest] = await folder.session();
    expect(first).toEqual(note(1));
    expect(rest.length).toBeLessThanOrEqual(1); // The second record may have reached the disk anyway.
  });

  test("when a journal that was not closed is opened again", async () => {
    await folder.crash((slot) => {
      slot.append(note(1));
      return durable(slot);
    });
    const { asked, platform } = watchedDisk("writeDurably");
    asked.mockImplementationOnce(refused("ENOSPC", "write"));
    await expect(folder.open({ platform })).rejects.toThrow(
      `cannot write the journal ${folder.file}: the disk is full (ENOSPC)`,
    );
    expect(await folder.session()).toHaveLength(1);
  });

  test("to sync after cutting off the torn end prevents opening", async () => {
    await folder.crash((slot) => {
      slot.append(note(1));
      return durable(slot);
    });
    appendFileSync(folder.file, "torn");
    const { asked, platform } = watchedDisk("datasync");
    asked.mockImplementationOnce(refused("EIO", "fdatasync"));
    await expect(folder.open({ platform })).rejects.toThrow(
      `cannot open the journal ${folder.file}: the disk failed (EIO)`,
    );
    expect(asked).toHaveBeenCalledOnce();
    expect(await folder.session()).toEqual([note(1)]);
  });

  test("a disk that is too slow", async () => {
    const { journal: counts } = newCounts();
    const { asked: sync, platform } = watchedDisk("writeDurably");
    const journal = await folder.open({ platform, limits: { maxPendingBytes: 500 }, counts });
    const slot = journal.slot("notes", noteShape);
    await durable(slot);
    sync.mockClear();
    const { act, finish } = held();
    sync.mockImplementationOnce(act);
    slot.append(note(0));
    await vi.waitFor(() => expect(sync).toHaveBeenCalled(), PATIENCE);
    for (let i = 0; i < 100; i++) slot.append(note(i));
    expect(folder.failures).toHaveLength(1);
    expect(folder.failures[0]?.message).toContain("more than 500 bytes are waiting to be written");
    expect(counts.failures).toBe(1);
    finish();
  });
});

describe("a deleted slot", () => {
  test("can be reused, even while its data is being written, and after a restart", async () => {
    let journal = await folder.open({ limits: { maxSlots: 3 } }); // One slot is for the owner.
    const [stays, goes] = [journal.slot("stays", noteShape), journal.slot("goes", noteShape)];
    stays.append(note(1));
    goes.append(note(2));
    expect(() => journal.forget("goes")).toThrow("expected the journal slot to be unused");
    goes.release();
    journal.forget("goes");
    journal.forget("was never there");
    for (let i = 0; i < 100; i++) {
      const passing = journal.slot(`passing ${i}`, noteShape);
      expect(passing.records).toEqual([]);
      passing.append(note(i));
      expect(passing.records).toEqual([note(i)]);
      if (i % 10 === 0) await durable(passing);
      passing.release();
      if (i < 99) journal.forget(`passing ${i}`);
    }
    await journal.close();
    journal = await folder.open({ limits: { maxSlots: 3 } });
    expect(journal.slot("stays", noteShape).records).toEqual([note(1)]);
    const last = journal.slot("passing 99", noteShape);
    expect(last.records).toEqual([note(99)]);
    last.release();
    journal.forget("passing 99");
    await journal.close();
    journal = await folder.open({ limits: { maxSlots: 3 } });
    const other = journal.slot("other", variants({ word: { word: text(10) } }));
    expect(other.records).toEqual([]);
    expect(() => journal.slot("passing 99", noteShape)).toThrow("expected at most 3 slots in the journal");
    await journal.close();
  });

  test("does not make the file grow with the number of names", async () => {
    const journal = await folder.open({ limits: { rewriteFromBytes: 2_000 } });
    for (let i = 0; i < 300; i++) {
      const passing = journal.slot(`passing ${i}`, noteShape);
      passing.append(note(i));
      await durable(passing);
      passing.release();
      journal.forget(`passing ${i}`);
    }
    await vi.waitFor(() => expect(statSync(folder.file).size).toBeLessThan(6_000), PATIENCE);
    await journal.close();
  });
});
