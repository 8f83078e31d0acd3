import { expect, test } from "vitest";
import { Room } from "./lettering.ts";

test("of an arrow only the part on the sheet is walked along, however far away its ends are", () => {
  const near = new Room(400, 200);
  const far = new Room(400, 200);
  near.pass(-40, 60, 440, 84);
  far.pass(-40 - 480e7, 60 - 24e7, 440 + 480e7, 84 + 24e7);
  expect(far.passed(0, 0, 400, 200)).toBeGreaterThan(90);
  expect(Math.abs(far.passed(0, 0, 400, 200) - near.passed(0, 0, 400, 200))).toBeLessThan(4);
  const upright = new Room(400, 200);
  upright.pass(100, 20, 100, 180);
  expect(upright.passed(96, 0, 8, 200)).toBeGreaterThan(35);
  const outside = new Room(400, 200);
  outside.pass(500, 20, 900, 180);
  expect(outside.passed(0, 0, 400, 200)).toBe(0);
});
