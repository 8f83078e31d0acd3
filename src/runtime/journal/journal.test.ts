import { describe, expect, test } from "vitest";
import { memoryJournal } from "../../../test/journal/memory-journal.ts";
import { type Ground, grounds } from "../../../test/platform/ground.ts";
import { InvariantViolation, UsageError } from "../../core/errors.ts";
import { natural, type Shape, text, variants } from "../../core/shape.ts";
import { openJournal } from "./disk-journal.ts";
import type { Journal, Slot } from "./journal.ts";

type Note = { type: "promised"; round: number } | { type: "accepted"; value: string };
const shape: Shape<Note> = variants<Note>({ promised: { round: natural }, accepted: { value: text(100) } });
const promised = (round: number): Note => ({ type: "promised", round });

/** The storage outlives a journal, so reopening it returns the last content. */
type Body = (open: () => Promise<Journal>) => Promise<void>;

const onGround =
  (body: Body): ((ground: Ground) => Promise<void>) =>
  ({ folder, platforms: [platform], closing }) => {
    const onFailure = (error: Error): void => expect.fail(error.message);
    const options = { platform, owner: "me", log: { warn: () => {} }, onFailure };
    return body(async () => closing(await openJournal(folder, options)));
  };

const kinds: { name: string; on(body: Body): () => Promise<void> }[] = [
  {
    name: "in memory",
    on: (body) => () => {
      const kept = new Map();
      return body(() => Promise.resolve(memoryJournal(kept)));
    },
  },
  ...grounds.map(({ name, on }) => ({ name: `on a ${name} disk`, on: (body: Body) => on(onGround(body)) })),
];

const durable = (slot: Slot<Note>): Promise<void> => new Promise((resolve) => slot.whenDurable(resolve));

describe.each(kinds)("a journal $name", ({ on }) => {
  test(
    "returns appended records in order, also after it was closed and reopened",
    on(async (open) => {
      const journal = await open();
      const slot = journal.slot("paxos", shape);
      expect(slot.records).toEqual([]);
      slot.append(promised(1));
      slot.append({ type: "accepted", value: "blue" });
      expect(slot.records).toEqual([promised(1), { type: "accepted", value: "blue" }]);
      await journal.close();
      const again = (await open()).slot("paxos", shape);
      expect(again.records).toEqual([promised(1), { type: "accepted", value: "blue" }]);
      again.append(promised(2));
      expect(again.records).toHaveLength(3);
    }),
  );

  test(
    "keeps slots separate, and compacts each on its own",
    on(async (open) => {
      const journal = await open();
      const [left, right] = [journal.slot("left", shape), journal.slot("right", shape)];
      for (const round of [1, 2, 3]) {
        left.append(promised(round));
        right.append(promised(round * 10));
      }
      left.compact([promised(4)]);
      left.append(promised(5));
      await durable(left);
      right.append(promised(40));
      await journal.close();
      const later = await open();
      expect(later.slot("left", shape).records).toEqual([promised(4), promised(5)]);
      expect(later.slot("right", shape).records).toEqual([10, 20, 30, 40].map(promised));
    }),
  );

  test(
    "reports durable writes in the order of the calls, and never synchronously",
    on(async (open) => {
      const slot = (await open()).slot("paxos", shape);
      const said: string[] = [];
      slot.append(promised(1));
      slot.whenDurable(() => said.push("first"));
      slot.append(promised(2));
      slot.whenDurable(() => said.push("second"));
      expect(said).toEqual([]);
      await durable(slot);
      expect(said).toEqual(["first", "second"]);
      slot.whenDurable(() => said.push("nothing to wait for"));
      expect(said).toHaveLength(2);
      await durable(slot);
      expect(said).toHaveLength(3);
    }),
  );

  test(
    "replaces records by several others, but not by none",
    on(async (open) => {
      const slot = (await open()).slot("paxos", shape);
      for (const round of [1, 2, 3]) slot.append(promised(round));
      slot.compact([promised(7), promised(8)]);
      slot.append(promised(9));
      expect(() => slot.compact([])).toThrow("at least one record");
      expect(slot.records).toEqual([7, 8, 9].map(promised));
      await durable(slot);
      expect(slot.records).toEqual([7, 8, 9].map(promised));
    }),
  );

  test(
    "replaces nothing if one of the records is rejected",
    on(async (open) => {
      const slot = (await open()).slot("paxos", shape);
      for (const round of [1, 2]) slot.append(promised(round));
      expect(() => slot.compact([promised(3), promised(-4)])).toThrow(InvariantViolation);
      await durable(slot);
      expect(slot.records).toEqual([1, 2].map(promised));
    }),
  );

  test(
    "stores a record as it was when it was appended",
    on(async (open) => {
      const slot = (await open()).slot("paxos", shape);
      const record = { type: "promised" as const, round: 1 };
      slot.append(record);
      record.round = 2;
      expect(slot.records).toEqual([promised(1)]);
    }),
  );

  test(
    "gives a slot to one owner at a time; after a release the next one finds all records, durable or not",
    on(async (open) => {
      const journal = await open();
      const slot = journal.slot("paxos", shape);
      expect(() => journal.slot("paxos", shape)).toThrow(UsageError);
      slot.append(promised(1));
      await durable(slot);
      slot.append(promised(2));
      slot.release();
      expect(journal.slot("paxos", shape).records).toEqual([promised(1), promised(2)]);
    }),
  );

  test.each([{ type: "promised", round: -1 }, { type: "promised" }, { type: "forgot" }])(
    "rejects %j, which does not have the slot's shape, and stays unchanged",
    (record) =>
      on(async (open) => {
        const slot = (await open()).slot("paxos", shape);
        slot.append(promised(1));
        expect(() => slot.append(record as Note)).toThrow(InvariantViolation);
        slot.append(promised(2));
        expect(slot.records).toEqual([promised(1), promised(2)]);
      })(),
  );
});
