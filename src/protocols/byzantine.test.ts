import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvariantViolation } from "../core/errors.ts";
import type { NodeId, Protocol, Tagged } from "../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, problem, real, struct, text, variants } from "../core/shape.ts";
import { idealSignatures, isGenuine, type Signed, signed } from "../core/signatures.ts";
import { type Chooser, step } from "../core/step.ts";
import { simulation } from "../sim/simulation.ts";
import { type ByzantineBehaviour, behaviours, byzantine } from "./byzantine.ts";
import { extendedChangRoberts } from "./election/chang-roberts/extended-chang-roberts.ts";
import { liesAbout } from "./lies.ts";

/** Sends a number with its history to all peers, and keeps every number that it receives. */
type Gossip = {
  state: { numbers: number[] };
  message: { type: "rumour"; number: number; history: number[] };
  timer: "again";
  command: { type: "tell"; number: number };
};

const gossip: Protocol<Gossip> = {
  name: "gossip",
  init: () => ({ numbers: [] }),
  start: (_state, ctx) => ctx.broadcast({ type: "rumour", number: 1, history: [0, 5] }),
  receive: { rumour: (state, _from, { number }) => void state.numbers.push(number) },
  timeout: { again: (_state, ctx) => ctx.send(1, { type: "rumour", number: 3, history: [] }) },
  command: { tell: (_state, { number }, ctx) => ctx.send(1, { type: "rumour", number, history: [] }) },
  shapes: {
    message: { rumour: { number: natural, history: list(natural, 9) } },
    command: { tell: { number: natural } },
  },
  source: "none",
  assumes: [],
  properties: [
    {
      name: "truth",
      claim: "no node has received a number over 1",
      when: "always",
      holds: ({ alive, state }) => alive.every((node) => state(node).numbers.every((number) => number <= 1)),
    },
    {
      name: "news",
      claim: "every node receives a number",
      when: "leadsTo",
      given: () => true,
      holds: ({ state }, node) => state(node).numbers.length > 0,
    },
  ],
  costs: [],
  view: () => ({ role: "gossip" }),
};

const at = (self: NodeId) => ({ self, peers: [0, 1, 2].filter((peer) => peer !== self) });
const liar = (behaviour: ByzantineBehaviour, node: NodeId = 0): Protocol<Gossip> =>
  byzantine(gossip, new Map([[node, behaviour]]));

/** Returns every message that node 0 may send when it starts, over all choices. */
function possible(protocol: Protocol<Gossip>): Set<string> {
  const seen = new Set<string>();
  const prefixes: number[][] = [[]];
  for (let prefix = prefixes.pop(); prefix !== undefined; prefix = prefixes.pop()) {
    const taken: number[] = [];
    const choose: Chooser = (_label, options) => {
      const option = prefix[taken.length] ?? 0;
      if (taken.length >= prefix.length)
        for (let other = 1; other < options.length; other++) prefixes.push([...taken, other]);
      taken.push(option);
      return options[option] as (typeof options)[number];
    };
    const { effects } = step(protocol, at(0), protocol.init(0, [1, 2]), { kind: "start" }, choose);
    const sent = effects.flatMap((effect) => (effect.kind === "send" ? [[effect.to, effect.message]] : []));
    seen.add(JSON.stringify(sent));
  }
  return seen;
}

describe("a Byzantine node", () => {
  it("mute: sends nothing but still receives", () => {
    expect(possible(liar("mute"))).toEqual(new Set(["[]"]));
    const protocol = liar("mute");
    const message = { type: "rumour", number: 1, history: [] } as const;
    const { state } = step(
      protocol,
      at(0),
      { numbers: [] },
      { kind: "receive", from: 1, message: { ...message, history: [] } },
    );
    expect(state).toEqual({ numbers: [1] });
  });

  it("equivocate: sends each receiver the message or a copy with one value changed, never a number below 0", () => {
    const runs = [...possible(liar("equivocate"))].map((run) => JSON.parse(run) as [NodeId, Gossip["message"]][]);
    const told = new Set(runs.flatMap((run) => run.map(([, { number, history }]) => `${number} ${history.join(",")}`)));
    expect(told).toEqual(new Set(["1 0,5", "2 0,5", "0 0,5", "1 5", "1 0", "1 1,5", "1 0,6", "1 0,4", "1 0,5,5"]));
    expect(runs).toHaveLength(told.size ** 2);
  });

  it("a custom lie: sends one of the given messages to the receiver", () => {
    const lie = (to: NodeId, message: { type: string }) =>
      to === 1 ? [] : [message, { type: "rumour", number: 9, history: [] }];
    expect(possible(liar({ lie }))).toEqual(
      new Set([
        '[[2,{"type":"rumour","number":1,"history":[0,5]}]]',
        '[[2,{"type":"rumour","number":9,"history":[]}]]',
      ]),
    );
  });

  it("replay: sends the correct message and may resend earlier ones", () => {
    const runs = [...possible(liar("replay"))].map((run) => (JSON.parse(run) as [NodeId][]).map(([to]) => to));
    expect(runs.sort((a, b) => a.length - b.length)).toEqual([
      [1, 2],
      [1, 2, 2],
    ]);
  });

  it("replay: may also resend messages that it received", () => {
    const protocol = liar("replay");
    const rumour = { type: "rumour", number: 8, history: [] } as const;
    const { state } = step(
      protocol,
      at(0),
      protocol.init(0, [1, 2]),
      { kind: "receive", from: 1, message: { ...rumour, history: [] } },
      (_label, options) => options.at(-1) as (typeof options)[number],
    );
    const last: Chooser = (_label, options) => options.at(-1) as (typeof options)[number];
    const { effects } = step(protocol, at(0), state, { kind: "timeout", timer: "again" }, last);
    expect(effects.filter(({ kind }) => kind === "send")).toEqual([
      { kind: "send", to: 1, message: { type: "rumour", number: 3, history: [] } },
      { kind: "send", to: 1, message: rumour },
    ]);
  });

  it("forge: never sends the correct message, but always a valid message of the protocol", () => {
    const runs = [...possible(liar("forge"))].map((run) => JSON.parse(run) as [NodeId, Gossip["message"]][]);
    const said = runs.flatMap((run) => run.map(([, message]) => message));
    expect(said.length).toBeGreaterThan(10);
    for (const { number, history } of said) {
      expect(`${number} ${history.join()}`).not.toBe("1 0,5");
      expect([number, ...history].every((each) => each >= 0)).toBe(true);
    }
  });

  it.each([
    ["flood", 1_000],
    [{ floods: 7 }, 7],
    [{ floods: 0 }, 0],
  ] as const)("%j: sends the correct messages, and %i more in all", (behaviour, more) => {
    const nodes = [0, 1, 2];
    const sim = simulation<Gossip>({
      protocol: gossip,
      nodes,
      seed: 1,
      delayMs: 1,
      byzantine: new Map([[0, behaviour]]),
    });
    for (const node of nodes) sim.start(node);
    sim.run();
    expect(sim.messages.total).toBe(6 + more);
    expect(sim.world.state(1).numbers.length + sim.world.state(2).numbers.length).toBe(4 + more);
  });

  it("an endless flood continues, and its memory does not grow", () => {
    const protocol = liar({ floods: null });
    let { state, effects } = step(protocol, at(0), protocol.init(0, [1, 2]), { kind: "start" });
    const size = JSON.stringify(state).length;
    for (let again = 0; again < 100; again++) {
      ({ state, effects } = step(protocol, at(0), state, { kind: "timeout", timer: "byzantine" as "again" }));
      expect(effects.filter(({ kind }) => kind === "send")).toHaveLength(40);
      expect(effects.at(-1)).toEqual({ kind: "setTimer", timer: "byzantine", duration: 10 });
    }
    expect(JSON.stringify(state)).toHaveLength(size);
  });

  it("a Byzantine node survives a violation of its own invariants, a correct node does not", () => {
    const strict: Protocol<Gossip> = {
      ...gossip,
      receive: {
        rumour() {
          throw new InvariantViolation("never", "unreachable");
        },
      },
    };
    const rumour = { kind: "receive", from: 1, message: { type: "rumour", number: 1, history: [0] } } as const;
    const heard = { ...rumour, message: { ...rumour.message, history: [0] } };
    for (const behaviour of behaviours) {
      const protocol = byzantine(strict, new Map([[0, behaviour]]));
      expect(() => step(protocol, at(0), protocol.init(0, [1, 2]), heard)).not.toThrow();
      expect(() => step(protocol, at(2), protocol.init(2, [0, 1]), heard)).toThrow("unreachable");
    }
  });

  it("does nothing when it has no peers", () => {
    for (const behaviour of behaviours) {
      const protocol = liar(behaviour);
      const { effects } = step(protocol, { self: 0, peers: [] }, protocol.init(0, []), { kind: "start" });
      expect(effects.filter(({ kind }) => kind === "send")).toEqual([]);
    }
  });

  it("withhold: holds messages back and sends each of them once, later", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const sim = simulation<Gossip>({
          protocol: gossip,
          nodes: [0, 1],
          seed,
          delayMs: 1,
          properties: "at the end",
          byzantine: new Map([[0, "withhold"]]),
        });
        for (const node of [0, 1]) sim.wake(node);
        const numbers = Array.from({ length: 12 }, (_, i) => i);
        for (const number of numbers) sim.command(0, { type: "tell", number });
        sim.run();
        type Keeping = { byzantine: { kept: { message: Gossip["message"] }[] } };
        const { kept } = (sim.world.state(0) as Gossip["state"] & Keeping).byzantine;
        const told = [...sim.world.state(1).numbers, ...kept.map(({ message }) => message.number)];
        expect(kept.length).toBeLessThanOrEqual(4);
        expect(told.sort((a, b) => a - b)).toEqual(numbers);
      }),
      { numRuns: 50 },
    );
  });

  it("lies on timeouts and commands as well, not only when it starts", () => {
    const protocol = liar("mute");
    for (const stimulus of [
      { kind: "timeout", timer: "again" },
      { kind: "command", command: { type: "tell", number: 1 } },
    ] as const)
      expect(step(protocol, at(0), { numbers: [] }, stimulus).effects).toEqual([]);
    expect(step(protocol, at(2), { numbers: [] }, { kind: "timeout", timer: "again" }).effects).toHaveLength(1);
  });

  it("is excluded from the properties", () => {
    const run = (node: NodeId, behaviour: ByzantineBehaviour) => {
      const sim = simulation<Gossip>({
        protocol: gossip,
        nodes: [0, 1, 2],
        seed: 1,
        delayMs: 1,
        byzantine: new Map([[node, behaviour]]),
      });
      for (const each of [0, 1]) sim.wake(each);
      sim.start(2);
      sim.command(0, { type: "tell", number: 7 });
      sim.run();
      return sim.verdict().map(({ property }) => property);
    };
    expect(run(1, "mute")).toEqual(["news"]); // Node 1 received 7, node 2 received nothing.
    expect(run(2, "mute")).toEqual(["truth", "news"]);
  });

  it("makes a ring elect any node", () => {
    const ring = [0, 1, 2, 3];
    const lie = (_to: NodeId, message: { type: string }) => [{ ...message, type: "elected", id: 1 }];
    const sim = simulation({
      protocol: extendedChangRoberts({ ring }),
      nodes: ring,
      seed: 1,
      delayMs: 1,
      byzantine: new Map([[3, { lie }]]),
    });
    for (const node of ring) sim.wake(node);
    sim.command(2, { type: "call" });
    sim.run();
    expect(sim.world.state(0).elected).toBe(1);
    expect(sim.violations.map(({ property }) => property)).toContain("E1 safety");
  });

  it("rejects an unknown behavior", () => {
    expect(() => liar("rude" as "mute")).toThrow(
      'expected the behavior of node 0 to be one of mute, equivocate, replay, withhold, forge, flood, adversary, { lies }, { floods } or { lie }, got "rude"',
    );
    for (const behaviour of [{ lies: -1 }, { floods: 0.5 }, { lie: 3 }, null, "toString"])
      expect(() => liar(behaviour as "mute")).toThrow("expected the behavior of node 0 to be one of");
  });
});

type Said =
  | { type: "said"; number: number; word: string; flags: boolean[]; maybe: number | null; vote: Signed<number> }
  | { type: "kind"; kind: "a" | "b" | "c"; at: { x: number } };
const vote = signed("vote", natural);
const shape = variants<Said>({
  said: { number: natural, word: text(9), flags: list(boolean, 2), maybe: nullable(natural), vote },
  kind: { kind: oneOf("a", "b", "c"), at: struct({ x: real }) },
});
const ctx = { self: 1, signatures: idealSignatures(1) };
const signature = idealSignatures(2).sign('["vote",2,7]');
const ofAnother: Said = {
  type: "said",
  number: 3,
  word: "yes",
  flags: [true],
  maybe: null,
  vote: { by: 2, value: 7, signature },
};
const messages = fc.oneof(
  fc.record({
    type: fc.constant("said" as const),
    number: fc.nat(),
    word: fc.string({ maxLength: 3 }),
    flags: fc.array(fc.boolean(), { maxLength: 2 }),
    maybe: fc.option(fc.nat()),
    vote: fc.constant(ofAnother.vote),
  }),
  fc.record({
    type: fc.constant("kind" as const),
    kind: fc.constantFrom("a" as const, "b", "c"),
    at: fc.record({ x: fc.integer() }),
  }),
) as fc.Arbitrary<Said>;

it("lies are valid messages, differ from the correct one, are distinct, and are bounded in number", () => {
  fc.assert(
    fc.property(messages, fc.array(messages, { maxLength: 4 }), (message, seen) => {
      const lies = liesAbout(message, shape, seen, ctx);
      for (const lie of lies) expect(problem(shape, lie, "lie")).toBe(null);
      const texts = [message, ...lies].map((each) => JSON.stringify(each));
      expect(new Set(texts).size).toBe(texts.length);
      expect(lies.length).toBeLessThanOrEqual(64);
    }),
    { numRuns: 100 },
  );
});

it("a value changes by one, to a seen value, or to another member of a small set", () => {
  const said = liesAbout({ type: "kind", kind: "a", at: { x: 1 } } as Tagged, shape, [], ctx);
  expect(said).toEqual([
    { type: "kind", kind: "b", at: { x: 1 } },
    { type: "kind", kind: "c", at: { x: 1 } },
    { type: "kind", kind: "a", at: { x: 2 } },
    { type: "kind", kind: "a", at: { x: 0 } },
  ]);
  const numbers = liesAbout(ofAnother, shape, [{ ...ofAnother, number: 40, word: "no" } as Tagged], ctx) as (Said & {
    type: "said";
  })[];
  expect(new Set(numbers.map(({ number }) => number))).toEqual(new Set([40, 3, 7, 4, 2]));
  expect(new Set(numbers.map(({ word }) => word))).toEqual(new Set(["yes", "no"]));
});

it("uses only seen signatures of another node, but signs anything as itself", () => {
  const lies = liesAbout(ofAnother, shape, [], ctx) as (Said & { type: "said" })[];
  const votes = lies.map(({ vote: given }) => given);
  expect(votes.every((given) => isGenuine(ctx, vote, given))).toBe(true);
  expect(new Set(votes.filter(({ by }) => by === 2).map(({ value }) => value))).toEqual(new Set([7]));
  expect(votes.some(({ by, value }) => by === 1 && value === 8)).toBe(true);
});

it("lists grow by their own items and by items seen in such a list, within their bounds", () => {
  type Votes = { type: "votes"; votes: Signed<number>[]; best: Signed<number> | null };
  const votes = variants<Votes>({ votes: { votes: list(vote, 3), best: nullable(vote) } });
  const own = { by: 1, value: 7, signature: idealSignatures(1).sign('["vote",1,7]') };
  const lies = liesAbout(
    { type: "votes", votes: [ofAnother.vote], best: null } as Tagged,
    votes,
    [{ type: "votes", votes: [own], best: null } as Tagged],
    ctx,
  ) as Votes[];
  const lists = lies.map(({ votes: given }) => given.map(({ by }) => by).join());
  expect(lists).toContain("2,2"); // One vote, counted as two.
  expect(lists).toContain("2,1");
  // A null may become a signed value that the node has seen. It never becomes a new signature in a different node's
  // name.
  expect(new Set(lies.flatMap(({ best }) => best ?? []))).toEqual(new Set([own, ofAnother.vote]));
  const full = { type: "votes", votes: [own, own, own], best: null };
  for (const lie of liesAbout(full, votes, [], ctx) as Votes[]) expect(lie.votes.length).toBeLessThanOrEqual(3);
});

it("a long message gets no more than the maximum number of lies", () => {
  type Many = { type: "many"; words: string[] };
  const many = variants<Many>({ many: { words: list(text(9), 100_000) } });
  const words = Array.from({ length: 20_000 }, (_, number) => `${number}`);
  expect(liesAbout({ type: "many", words } as Tagged, many, [], ctx)).toHaveLength(64);
});
