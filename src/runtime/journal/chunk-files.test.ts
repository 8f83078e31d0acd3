import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { journalFolder } from "../../../test/journal/journal-folder.ts";
import { watchedDisk } from "../../../test/journal/watched-disk.ts";
import { Chunk } from "../../core/chunk.ts";
import { chunk, list, natural, type Shape, variants } from "../../core/shape.ts";
import type { Slot } from "./journal.ts";

type Saved = { type: "part"; part: Chunk } | { type: "whole"; index: number; parts: Chunk[] };
const savedShape: Shape<Saved> = variants<Saved>({
  part: { part: chunk(1_000_000) },
  whole: { index: natural, parts: list(chunk(1_000_000), 100) },
});

const folder = journalFolder();

const partOf = (letter: string, length = 1_000): Chunk => Chunk.of(letter.repeat(length));
const whole = (index: number, ...parts: Chunk[]): Saved => ({ type: "whole", index, parts });
const durable = (slot: Slot<Saved>): Promise<void> => new Promise((resolve) => slot.whenDurable(resolve));
const chunkFiles = (): string[] => readdirSync(folder.path).filter((name) => name.startsWith("chunk-"));

/** Returns the texts of the chunks in the slot's records. */
const textsIn = (slot: Slot<Saved>): string[] =>
  slot.records.flatMap((record) =>
    record.type === "part" ? [record.part.text] : record.parts.map(({ text }) => text),
  );

test("stores a chunk in a separate file instead of the journal, and reads its bytes from there", async () => {
  const journal = await folder.open();
  const slot = journal.slot("saved", savedShape);
  const part = partOf("a", 500_000);
  slot.append({ type: "part", part });
  expect(textsIn(slot)).toEqual([part.text]);
  await durable(slot);
  expect(statSync(folder.file).size).toBeLessThan(2_000);
  const [file = ""] = chunkFiles();
  expect(readFileSync(join(folder.path, file), "utf8")).toBe("a".repeat(500_000));
  expect(part.text).toBe("a".repeat(500_000));
  await journal.close();
  const again = (await folder.open()).slot("saved", savedShape);
  expect(textsIn(again)).toEqual(["a".repeat(500_000)]);
});

test("writes a chunk of several records once", async () => {
  const journal = await folder.open();
  const slot = journal.slot("saved", savedShape);
  const [a, b] = [partOf("a"), partOf("b")];
  slot.append({ type: "part", part: a });
  slot.append({ type: "part", part: b });
  await durable(slot);
  slot.compact([whole(7, a, b)]);
  await durable(slot);
  expect(chunkFiles()).toHaveLength(2);
  expect(textsIn(slot)).toEqual([a.text, b.text]);
  await journal.close();
  const reopened = await folder.open();
  const [record] = reopened.slot("saved", savedShape).records;
  if (record?.type !== "whole") throw new Error("it is another record");
  const third = reopened.slot("other", savedShape);
  third.append(whole(8));
  await durable(third);
  expect(record.parts.map(({ text }) => text)).toEqual([a.text, b.text]);
});

test("deletes files of unreferenced chunks once the replacement is durable", async () => {
  const journal = await folder.open();
  const slot = journal.slot("saved", savedShape);
  slot.append(whole(1, partOf("a"), partOf("b")));
  await durable(slot);
  const before = chunkFiles();
  slot.compact([whole(2, partOf("c"))]);
  expect(chunkFiles()).toEqual(before);
  await durable(slot);
  await journal.close();
  expect(chunkFiles()).toHaveLength(1);
  expect(textsIn((await folder.open()).slot("saved", savedShape))).toEqual([partOf("c").text]);
});

test("makes a chunk durable before writing a record that refers to it", async () => {
  const { asked, platform } = watchedDisk("writeDurably");
  const journal = await folder.open({ platform });
  const slot = journal.slot("saved", savedShape);
  await durable(slot);
  asked.mockClear();
  slot.append({ type: "part", part: partOf("a") });
  let filesAtWrite = -1;
  asked.mockImplementationOnce(() => {
    filesAtWrite = chunkFiles().length;
    return Promise.resolve();
  });
  await durable(slot);
  expect(filesAtWrite).toBe(1);
});

test("deletes files left by a crash when the slot is taken", async () => {
  const journal = await folder.open();
  const slot = journal.slot("saved", savedShape);
  slot.append({ type: "part", part: partOf("a") });
  await durable(slot);
  await journal.close();
  writeFileSync(join(folder.path, "chunk-99"), "left over");
  const reopened = await folder.open();
  const again = reopened.slot("saved", savedShape);
  again.append({ type: "part", part: partOf("b") });
  await durable(again);
  await reopened.close();
  expect(chunkFiles()).toHaveLength(2);
  expect(textsIn((await folder.open()).slot("saved", savedShape))).toEqual([partOf("a").text, partOf("b").text]);
});

test.each([
  ["changed", (path: string) => writeFileSync(path, "b".repeat(1_000))],
  ["cut", (path: string) => writeFileSync(path, "a".repeat(999))],
])("a chunk whose file was %s is rejected", async (_what, harm) => {
  const journal = await folder.open();
  const slot = journal.slot("saved", savedShape);
  const part = partOf("a");
  slot.append({ type: "part", part });
  await durable(slot);
  harm(join(folder.path, chunkFiles()[0] as string));
  expect(() => part.text).toThrow(expect.objectContaining({ name: "EnvironmentError", code: "damaged-journal" }));
});

test("counts chunks that wait for the disk towards the limit", async () => {
  const journal = await folder.open({ limits: { maxPendingBytes: 10_000 } });
  const slot = journal.slot("saved", savedShape);
  slot.append({ type: "part", part: partOf("a", 20_000) });
  expect(folder.failures).toMatchObject([{ code: "slow-disk" }]);
});

test("writes a chunk of two slots once, and keeps it until neither refers to it", async () => {
  const journal = await folder.open();
  const [left, right] = [journal.slot("left", savedShape), journal.slot("right", savedShape)];
  const part = partOf("a");
  left.append({ type: "part", part });
  await durable(left);
  right.compact([whole(1, part)]);
  left.compact([whole(0)]);
  await durable(left);
  expect(textsIn(right)).toEqual([part.text]);
  expect(chunkFiles()).toHaveLength(1);
  right.compact([whole(2)]);
  await durable(right);
  await journal.close();
  expect(chunkFiles()).toEqual([]);
});

test("deletes the chunks of a deleted slot", async () => {
  const journal = await folder.open();
  const slot = journal.slot("saved", savedShape);
  slot.append(whole(1, partOf("a")));
  await durable(slot);
  slot.release();
  journal.forget("saved");
  await journal.close();
  expect(chunkFiles()).toEqual([]);
});
