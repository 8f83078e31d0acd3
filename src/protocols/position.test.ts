import { expect, it } from "vitest";
import { ledView, withPositions } from "./presentation.ts";

const view = (_state: object, _self: number) => ({ role: "member" });

it("a picture with a position keeps it, however the state goes on", () => {
  const state = { queue: [1] };
  const placed = withPositions({ view }, (of) => ({ queue: (of as typeof state).queue }), undefined);
  const before = placed.view(state, 0);
  state.queue.push(2);
  expect(before).toEqual({ role: "member", position: { queue: [1] } });
  expect(placed.view(state, 0)).toEqual({ role: "member", position: { queue: [1, 2] } });
});

it("where a node stands like any other, its picture is what it was", () => {
  expect(withPositions({ view }, () => ({}), undefined).view({}, 0)).toEqual({ role: "member" });
});

it("who is followed is the leader that the picture names, or else the one of the position", () => {
  const position = { follows: 2 };
  expect(ledView({ role: "node", position }).leader).toBe(2);
  expect(ledView({ role: "node", leader: 1, position }).leader).toBe(1);
  expect(ledView({ role: "node" })).toEqual({ role: "node" });
});
