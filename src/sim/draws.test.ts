/** Checks that draws for the same occasion are equal in a different run, regardless of the draws in between. */
import { expect, test } from "vitest";
import { random } from "../core/random.ts";
import { Draws } from "./draws.ts";

/** Draws once for each occasion, advancing the place each time. */
function drawn(draws: Draws, occasions: readonly string[], move: () => void): number[] {
  const source = draws.over("delays", random(7).stream("delays"));
  return occasions.map((occasion) => {
    move();
    draws.next(occasion);
    return source.between(0, 1);
  });
}

test("a run that continues another makes the same draws for the same occasions, and new draws for others", () => {
  let [place, forked] = [0, 2];
  const first = new Draws(() => place);
  const [a1, b1, a2, b2] = drawn(first, ["a", "b", "a", "b"], () => void place++);
  const second = new Draws(() => forked, { draws: first, entries: 2 });
  const [newB2, newA2, newA3] = drawn(second, ["b", "a", "a"], () => void forked++);
  expect([newB2, newA2]).toEqual([b2, a2]);
  expect([a1, b1, a2, b2]).not.toContain(newA3);
  const third = new Draws(() => 4, { draws: second, entries: 4 });
  expect(drawn(third, ["a"], () => {})).toEqual([newA3]);
});

test("reports due times as of a given number of entries", () => {
  let place = 1;
  const draws = new Draws(() => place);
  draws.due("timer 0 election", 150);
  place = 5;
  draws.due("timer 0 election", 300);
  expect(draws.dueAfter("timer 0 election", 4)).toEqual([150]);
  expect(draws.dueAfter("timer 0 election", 5)).toEqual([150, 300]);
  expect(draws.dueAfter("timer 1 election", 5)).toEqual([]);
});
