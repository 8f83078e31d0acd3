import { describe, expect, it } from "vitest";
import { journal } from "./journal.ts";

describe("a journal", () => {
  it("a crash before a compaction is durable restores the replaced records", () => {
    const written = journal<string>();
    written.append("a", 0);
    written.append("b", 0);
    written.compact(["a and b"], 50);
    written.append("c", 60);
    expect(written.records).toEqual(["a and b", "c"]);
    expect(written.loseUnsynced(49)).toBe(2);
    expect(written.records).toEqual(["a", "b"]);
  });

  it("keeps no more than necessary after any number of compactions", () => {
    const written = journal<number>();
    for (let i = 0; i < 1_000; i++) {
      written.compact([i], i);
      written.sync();
    }
    expect(written.records).toEqual([999]);
    written.compact([1_000], 5_000);
    expect(written.loseUnsynced(2_000)).toBe(1);
    expect(written.records).toEqual([999]);
  });

  it("damages records written together as a unit: a damaged compaction restores the replaced records", () => {
    for (const at of [0, 1]) {
      const torn = journal<number>();
      torn.append(1, 0);
      torn.compact([2, 3], 0);
      torn.damage(at);
      expect(torn.legible).toEqual([1]);
      expect(torn.replay(4)).toEqual([1]);
    }
  });
});
