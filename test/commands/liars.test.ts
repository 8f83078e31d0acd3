/** Checks the values of `--byzantine` on real processes. */
import { expect, test } from "vitest";
import { coterie } from "./run-here.ts";

test.each([
  [["up", "--nodes", "3", "--byzantine", "3"], "expected --byzantine to be nodes from 0 to 2, got 3"],
  [["up", "--byzantine", "2=nice"], "expected --byzantine to be node ids, each with a behavior (mute, equivocate,"],
  [["up", "--byzantine", "two"], "expected --byzantine to be node ids, each with a behavior"],
  [["up", "--seed", "3"], "expected --byzantine with --seed"],
  [
    ["node", "--config", "x", "--id", "1", "--byzantine", "nice"],
    "expected --byzantine to be one of mute, equivocate,",
  ],
  [["node", "--config", "x", "--id", "1", "--seed", "1"], "expected --byzantine with --seed"],
])("%j is rejected", async (words, why) => {
  const { code, stderr } = await coterie(...words);
  expect(stderr).toContain(why);
  expect(code).toBe(2);
});
