/** Checks that values keyed by node have the same order and form in all drivers, regardless of insertion order. */
import { expect, it } from "vitest";
import { explore } from "../../src/check/index.ts";
import {
  boolean,
  entriesIn,
  natural,
  nodesIn,
  type PerNode,
  type Protocol,
  perNode,
  problem,
} from "../../src/core/index.ts";
import { codecOf, MalformedBytes, Reader, Writer } from "../../src/runtime/wire.ts";
import { simulation } from "../../src/sim/index.ts";
import { hostsInMemory } from "./hosts-in-memory.ts";

const BIG = 2 ** 40; // Too large to be an array index, so JavaScript does not sort it.

it("is ordered by id, no matter how high the ids are", () => {
  const map: PerNode<string> = { [BIG]: "c", [BIG - 1]: "b", 7: "a" };
  expect(nodesIn(map)).toEqual([7, BIG - 1, BIG]);
  expect(entriesIn(map)).toEqual([[7, "a"], [BIG - 1, "b"], [BIG, "c"]]); // biome-ignore format: short
});

it("has a shape, which reports errors", () => {
  const shape = perNode(boolean, 2);
  expect(problem(shape, { 3: true, 1: false }, "votes")).toBe(null);
  const wanted = "expected votes to be an object keyed by node id, with at most 2 nodes, got ";
  for (const wrong of [
    { 1: true, 2: true, 3: true },
    { x: true },
    { "01": true },
    { "-1": true },
    { "1.5": true },
    [true],
    null,
  ])
    expect(problem(shape, wrong, "votes")).toBe(wanted + JSON.stringify(wrong));
  expect(problem(shape, { 4: 1 }, "votes")).toBe("expected votes.4 to be true or false, got 1");
});

it("has one form in bytes: ids ascend", () => {
  const codec = codecOf<PerNode<boolean>>(perNode(boolean, 3));
  const bytesOf = (map: PerNode<boolean>): Buffer => {
    const into = new Writer();
    codec.write(map, into);
    return into.bytes();
  };
  const bytes = bytesOf({ [BIG]: true, 2: false });
  expect(bytes.equals(bytesOf({ 2: false, [BIG]: true }))).toBe(true);
  expect(Object.keys(codec.read(new Reader(bytes)))).toEqual(["2", String(BIG)]);
  for (const wrong of [[2, 5, 1, 5, 1], [2, 5, 1, 4, 1], [4, 1, 1, 2, 1, 3, 1, 4, 1]]) // biome-ignore format: short
    expect(() => codec.read(new Reader(Buffer.from(wrong)))).toThrow(MalformedBytes);
});

type Poll = {
  state: { votes: PerNode<number>; heard: number[][] };
  message: { type: "vote"; number: number } | { type: "votes"; votes: PerNode<number> };
  command: { type: "vote"; number: number };
};

/** Node 0 collects numbers and sends all of them whenever it receives a new one. */
const poll: Protocol<Poll> = {
  name: "poll",
  init: () => ({ votes: {}, heard: [] }),
  command: { vote: (_state, { number }, ctx) => ctx.send(0, { type: "vote", number }) },
  receive: {
    vote(state, from, { number }, ctx) {
      state.votes[from] = number;
      ctx.broadcast({ type: "votes", votes: state.votes });
    },
    votes: (state, _from, { votes }) => void state.heard.push(entriesIn(votes).flat()),
  },
  shapes: {
    message: { vote: { number: natural }, votes: { votes: perNode(natural, 9) } },
    command: { vote: { number: natural } },
  },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: "voter" }),
};

it("is a value in messages, in all drivers", () => {
  const heard = [[3, 30], [1, 10, 3, 30]]; // biome-ignore format: short
  const nodes = [0, 1, 3];
  const sim = simulation({ protocol: poll, nodes, seed: 1, delayMs: 1 });
  for (const node of nodes) sim.wake(node);
  const { hosts, state, deliver } = hostsInMemory(poll, nodes);
  for (const node of [3, 1]) {
    sim.command(node, { type: "vote", number: 10 * node });
    hosts.get(node)?.command({ type: "vote", number: 10 * node });
    sim.run();
    deliver();
  }
  expect(sim.world.state(1).heard).toEqual(heard);
  expect(state(1).heard).toEqual(heard);
  const isHeard = {
    name: "heard",
    claim: "1 receives first 3's number and then both",
    when: "sometimes" as const,
    holds: ({ state: of }: { state(node: number): Poll["state"] }) =>
      JSON.stringify(of(1).heard) === JSON.stringify(heard),
  };
  const asks = (node: number) => (node === 0 ? [] : [{ type: "vote" as const, number: 10 * node }]);
  const model = { protocol: poll, nodes, network: "fifo", timers: "never", begin: "idle", asks } as const;
  expect(explore({ ...model, properties: [isHeard] }).verdict).toBe("holds");
});
