import { expect, test } from "vitest";
import { Chronicle } from "../history/chronicle.ts";
import { clusterOf, receive, send } from "../history/fixtures.ts";
import { EVENT, EventAxis } from "./event-axis.ts";

const entries = [send(1_000, 0, 1), receive(1_001, 0, 1, 1_000), send(60_000, 1, 0), receive(60_001, 1, 0, 60_000)];

function axisOf(chronicle: Chronicle): EventAxis {
  const axis = new EventAxis();
  axis.update(chronicle);
  return axis;
}

test("gives a millisecond between events its space, and a silent minute little more", () => {
  const axis = axisOf(new Chronicle(clusterOf([2, 2], 61_000), entries));
  const [message, silence] = [axis.placeOf(1_001) - axis.placeOf(1_000), axis.placeOf(60_000) - axis.placeOf(1_001)];
  expect(message).toBeGreaterThanOrEqual(EVENT);
  expect(silence).toBeGreaterThan(message);
  expect(silence).toBeLessThan(3 * message);
  expect(axis.breaks.length).toBe(1);
});

test("keeps the order of moments, and maps each place back to its moment", () => {
  const axis = axisOf(new Chronicle(clusterOf([2, 2], 61_000), entries));
  const moments = [900, 1_000, 1_000.5, 1_001, 30_000, 60_000, 60_001, 60_500, 200_000];
  const places = moments.map((at) => axis.placeOf(at));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  for (const at of [900, 1_000.5, 30_000, 60_001]) expect(axis.timeOf(axis.placeOf(at))).toBeCloseTo(at, 6);
});

test("keeps places when new events arrive and the oldest are forgotten", () => {
  const chronicle = new Chronicle(clusterOf([2, 2], 61_000), entries);
  const axis = axisOf(chronicle);
  const before = axis.placeOf(60_001);
  chronicle.add([send(60_500, 0, 1)]);
  chronicle.forget(30_000);
  axis.update(chronicle);
  expect(axis.placeOf(60_001)).toBeCloseTo(before, 6);
  expect(axis.placeOf(60_500)).toBeGreaterThan(before + EVENT);
});
