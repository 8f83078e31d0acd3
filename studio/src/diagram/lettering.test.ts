import { expect, test } from "vitest";
import { placeBeside, Room, widthOf } from "./lettering.ts";

test("examines only the part of an arrow on the sheet, no matter how far away its ends are", () => {
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

test("keeps text away from both edges of the sheet, even if its width is not a multiple of the squares", () => {
  const room = new Room(401, 200);
  const words = { key: "", text: "temporizador vencido", style: "plain", colour: "--ink", of: 0 } as const;
  const width = widthOf(words.text, "plain");
  expect(placeBeside(room, words, 401 - width - 6, 100)).not.toBeNull();
  expect(placeBeside(new Room(401, 200), words, 401 - width + 2, 100)).toBeNull();
  expect(room.isFree(2, 20, 40, 12)).toBe(false);
  expect(room.isFree(6, 20, 40, 12)).toBe(true);
});
