import { describe, expect, it, test } from "vitest";
import { Inkwell } from "../trace/diagram/ink.ts";
import { protocolNamed, protocolNames } from "./index.ts";
import { formsOf, messageInksOf, messageTypesOf } from "./message-inks.ts";
import { ledView, spanOf, withPositions } from "./presentation.ts";

test("lists the messages of a protocol in the order of their declaration, including parts", () => {
  const typesOf = (name: string) => messageTypesOf(formsOf(name).at(-1) as Parameters<typeof messageTypesOf>[0]);
  expect(typesOf("paxos")).toEqual(["prepare", "promise", "accept", "accepted", "nack", "decided", "learnt"]);
  expect(typesOf("chang-roberts")).toEqual([
    "detector.alive",
    "detector.farewell",
    "election.election",
    "election.elected",
  ]);
  expect(typesOf("causal-total")).toContain("lower.multicast");
});

test("the textbook's messages have the first inks, in the order of the book", () => {
  expect(messageInksOf("bully")).toMatchObject({ election: 0, answer: 1, coordinator: 2 });
  expect(messageInksOf("ricart-agrawala")).toMatchObject({ "mutex.request": 0, "mutex.reply": 1 });
  expect(messageInksOf("a custom algorithm")).toEqual({});
});

describe.each(protocolNames)("%s", (name) => {
  const places = messageInksOf(name);
  const inkwell = new Inkwell(places);

  test("a message has the same ink in the textbook form and in every other form", () => {
    const textbook = messageTypesOf(formsOf(name)[0] as Parameters<typeof messageTypesOf>[0]);
    const others = formsOf(name).slice(1).map(messageTypesOf);
    for (const type of textbook)
      for (const form of others) {
        const own = form.filter((other) => other === type || other.endsWith(`.${type}`) || type.endsWith(`.${other}`));
        if (own.length > 0) expect(own.map((other) => inkwell.of(other))).toContainEqual(inkwell.of(type));
      }
  });

  test("within a form no two messages look alike", () => {
    for (const types of formsOf(name).map(messageTypesOf)) {
      const looks = types.map((type) => JSON.stringify(inkwell.of(type)));
      expect(new Set(looks).size).toBe(types.length);
      expect(types.filter((type) => places[type] === undefined)).toEqual([]);
    }
  });
});

const view = (_state: object, _self: number) => ({ role: "member" });

it("a view keeps its position when the state changes later", () => {
  const state = { queue: [1] };
  const placed = withPositions({ view }, (of) => ({ queue: (of as typeof state).queue }), undefined);
  const before = placed.view(state, 0);
  state.queue.push(2);
  expect(before).toEqual({ role: "member", position: { queue: [1] } });
  expect(placed.view(state, 0)).toEqual({ role: "member", position: { queue: [1, 2] } });
});

it("a view without a position stays as it was", () => {
  expect(withPositions({ view }, () => ({}), undefined).view({}, 0)).toEqual({ role: "member" });
});

it("the leader is taken from the view, or else from the position", () => {
  const position = { follows: 2 };
  expect(ledView({ role: "node", position }).leader).toBe(2);
  expect(ledView({ role: "node", leader: 1, position }).leader).toBe(1);
  expect(ledView({ role: "node" })).toEqual({ role: "node" });
});

const shownBy = (protocol: string) => protocolNamed(protocol).presentation;

describe("the span of a node", () => {
  it("is its own ballot in Paxos, even if it knows higher ones", () => {
    const paxos = shownBy("paxos");
    expect(spanOf(paxos, { role: "preparing", term: 1 }, 4)).toEqual({ kind: "preparing", words: "ballot 1.4" });
    expect(spanOf(paxos, { role: "proposing", term: 2 }, 0)).toEqual({ kind: "proposing", words: "ballot 2.0" });
    expect(spanOf(paxos, { role: "acceptor", term: 2 }, 0)).toBeNull();
    const { init, view } = protocolNamed("paxos").model();
    const heard = { ...init(4, [0, 1]), round: 7, proposer: { is: "preparing", ballot: { round: 1, node: 4 } } };
    expect(view(heard as never, 4)).toEqual({ role: "preparing", term: 1 });
  });

  it("is a view in a changing group, and the time between two views", () => {
    const group = shownBy("view-synchrony");
    expect(spanOf(group, { role: "inside", term: 2 }, 0)).toEqual({ kind: "view", words: "view 2" });
    expect(spanOf(group, { role: "changing", term: 2 }, 0)).toEqual({ kind: "changing", words: "" });
    expect(spanOf(group, { role: "outside", term: 0 }, 0)).toBeNull();
    expect(spanOf(shownBy("isis"), { role: "up to date" }, 0)).toBeNull();
  });

  it("is a view with its primary in PBFT", () => {
    const pbft = shownBy("pbft");
    expect(spanOf(pbft, { role: "primary", term: 0, leader: 0 }, 0)).toEqual({ kind: "leading", words: "view 0" });
    expect(spanOf(pbft, { role: "backup", term: 0, leader: 0 }, 1)).toEqual({ kind: "view", words: "view 0" });
    expect(spanOf(pbft, { role: "changing view", term: 1, leader: null }, 1)).toMatchObject({ kind: "changing" });
  });
});
