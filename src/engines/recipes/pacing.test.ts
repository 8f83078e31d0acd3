import { expect, test } from "vitest";
import { fewAtOnce } from "./pacing.ts";

test("processes all items, and only a few at a time", async () => {
  const all = Array.from({ length: 200 }, (_, at) => at);
  const done: number[] = [];
  let underWay = 0;
  let most = 0;
  await fewAtOnce(all, async (each) => {
    underWay += 1;
    most = Math.max(most, underWay);
    await new Promise((resolve) => setImmediate(resolve));
    underWay -= 1;
    done.push(each);
  });
  expect(done).toEqual(all);
  expect(most).toBe(32);
});
