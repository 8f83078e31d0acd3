import { describe, expect, test } from "vitest";
import type { ShownRun } from "./engine/answers.ts";
import { forksOf, forksText, hashOf, MAX_LINK, type Words } from "./engine/recipe.ts";
import { actText, afterAct, forkTreeOf, listed, onBranch, withoutFork, withoutLastFork } from "./forking.ts";

/** Returns a run whose step i ends after i + 1 entries, with the acts of these words. */
const runOf = (words: Words) =>
  ({
    steps: Array.from({ length: 100 }, (_, step) => ({ entries: step + 1 })),
    forks: forksOf(words.fork ?? ""),
  }) as unknown as ShownRun;

const crash = (words: Words, step: number, node: number) =>
  afterAct(words, runOf(words), step, { act: "crash", node, what: "" });

const lines = (words: Words) =>
  listed(forkTreeOf(words)).map(
    ({ node: { act, stand }, depth }) => `${depth} ${act === null ? "as it was" : actText(act)}, ${stand}`,
  );

describe("branches", () => {
  const first = crash({ protocol: "bully", at: "9" }, 9, 2);
  const second = crash(first, 19, 3);
  /** Fork before the second act, so that this act goes to another branch. */
  const third = crash(second, 14, 4);

  test("keeps later acts as a branch when an earlier step is changed, and lists the branches as a tree", () => {
    expect(third).toEqual({ protocol: "bully", fork: "10 crash 2;15 crash 4", branches: "10 crash 2;20 crash 3" });
    expect(lines(third)).toEqual([
      "0 as it was, above",
      "1 crash node 2, above",
      "2 crash node 3, aside",
      "2 crash node 4, shown",
    ]);
  });

  test("loses no run when another one is selected", () => {
    const back = onBranch(third, "10 crash 2;20 crash 3");
    expect(back).toEqual({ protocol: "bully", fork: "10 crash 2;20 crash 3", branches: "10 crash 2;15 crash 4" });
    const origin = onBranch(back, "");
    expect(origin.fork).toBeUndefined();
    const acts = (words: Words) => new Set(lines(words).map((line) => line.split(",")[0]));
    expect(acts(origin)).toEqual(acts(third));
    expect(lines(onBranch(origin, "10 crash 2"))).toContain("1 crash node 2, shown");
  });

  test("takes the last act back on Undo, and keeps the other branches", () => {
    expect(withoutLastFork(third)).toEqual({
      protocol: "bully",
      fork: "10 crash 2",
      branches: "10 crash 2;20 crash 3",
    });
    expect(withoutLastFork(withoutLastFork(second))).toEqual({ protocol: "bully" });
  });

  test("returns to the step of the act on Undo, or keeps the cursor if it is before that", () => {
    const place = (step: number) => ({ run: runOf(second), step });
    expect(withoutLastFork(second, place(20)).at).toBe("19");
    expect(withoutLastFork(second, place(60)).at).toBe("19");
    expect(withoutLastFork(second, place(12)).at).toBe("12");
    expect(withoutLastFork(first, { run: runOf(first), step: 10 }).at).toBe("9");
  });

  test("keeps the place when an act in the middle is taken back, and when the run without it is selected", () => {
    const place = { run: runOf(second), step: 40 };
    expect(withoutFork(second, 0, place).at).toBe("9");
    expect(onBranch(second, "", place).at).toBe("9");
    expect(onBranch(second, first.fork ?? "", place).at).toBe("19");
    expect(onBranch(second, first.fork ?? "", { ...place, step: 5 }).at).toBe("5");
    expect(onBranch(second, "10 crash 2;30 crash 4", place).at).toBeUndefined(); // After the branch's own last act.
  });

  test("indents only alternatives, and no run further than the column allows", () => {
    let words: Words = { protocol: "bully" };
    for (let step = 4; step < 24; step++) words = crash(words, step, step);
    expect(new Set(listed(forkTreeOf(words)).map(({ depth }) => depth))).toEqual(new Set([0, 1]));
    // Each act is repeated one step later.
    for (let length = 18; length > 0; length--) {
      const before = forksOf(words.fork ?? "").slice(0, length);
      words = onBranch(words, forksText([...before, { entries: length + 6, act: "pause", node: 1, what: "" }]));
    }
    const depths = listed(forkTreeOf(words)).map(({ depth }) => depth);
    expect(Math.max(...depths)).toBe(4);
  });

  test("keeps no branch twice, and stays within the limits of a link", () => {
    let words: Words = { protocol: "bully" };
    for (let round = 0; round < 400; round++) words = onBranch(crash(words, round % 90, round % 7), "");
    const kept = (words.branches ?? "").split("|");
    expect(new Set(kept).size).toBe(kept.length);
    expect(kept.length).toBeLessThanOrEqual(12);
    const long = Array.from(
      { length: 20 },
      (_, place) => `${place + 1000} timer 3 a-timer-with-quite-a-long-name`,
    ).join(";");
    const deep = Array.from({ length: 12 }, (_, place) => `${place} crash 1;${long}`).reduce(
      (before: Words, fork) => onBranch(before, fork),
      words,
    );
    expect(hashOf({ page: "run", words: deep }).length).toBeLessThanOrEqual(MAX_LINK);
    expect(deep.branches ?? "").not.toBe("");
  });

  test("stays within the limits including the step of the cursor", () => {
    // Each one is one character longer than the previous one, so one of them has the maximum length.
    const kept = Array.from({ length: MAX_LINK }, (_, length) => {
      const words = onBranch({ protocol: "bully", fork: `20 lose 2 ${"9".repeat(length)}` }, "10 crash 4");
      expect(hashOf({ page: "run", words: { ...words, at: "99999" } }).length).toBeLessThanOrEqual(MAX_LINK);
      return words.branches !== undefined;
    });
    expect(new Set(kept)).toEqual(new Set([true, false]));
  });
});

test("keeps the other acts when one is taken back, and the run with it as a branch", () => {
  const words = { protocol: "bully", fork: "10 crash 4;20 pause 1;30 resume 1", at: "7" };
  const left = withoutFork(words, 1);
  expect(left).toEqual({
    protocol: "bully",
    fork: "10 crash 4;30 resume 1",
    branches: "10 crash 4;20 pause 1;30 resume 1",
  });
  expect(withoutFork({ protocol: "bully", fork: "10 crash 4" }, 0)).toEqual({
    protocol: "bully",
    branches: "10 crash 4",
  });
});
