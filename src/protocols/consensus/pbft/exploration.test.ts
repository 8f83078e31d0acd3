/**
 * Explores four PBFT replicas, one of them Byzantine: every Byzantine message within bounds that reach a view change
 * with a prepared certificate, and the decision in the new view. There is one client with one request. Deliveries
 * follow one order except for `delays`. Random, PCT and swarm runs go beyond these bounds.
 */
import { describe, expect, it } from "vitest";
import { forger, forgeries } from "../../../../test/protocols/pbft-forger.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import { walk } from "../../../check/search/walks.ts";
import type { NodeId, Property, Tagged, World } from "../../../core/protocol.ts";
import { idealSignatures, type Signed, sign } from "../../../core/signatures.ts";
import { simulation } from "../../../sim/index.ts";
import { type ByzantineBehaviour, byzantine } from "../../byzantine.ts";
import { type ReplicatedSystem, replicated } from "../family/systems.ts";
import { commitShape, NOTHING, prePrepareShape, prepareShape, viewChangeShape } from "./certificates.ts";
import { type Pbft, type PbftOptions, pbft } from "./pbft.ts";
import type { Assignment } from "./vocabulary.ts";

type Replica = ReplicatedSystem<Pbft>;
type Message = Pbft["message"];
type Liars = Readonly<Record<NodeId, ByzantineBehaviour>>;

const use: Replica["command"] = { type: "client", body: { type: "use", commands: 1 } };

/** The milestones that a search must reach in addition to its verdict, judged by correct replicas only. */
const milestones: readonly Property<Replica>[] = [
  reached("equivocation", (states) =>
    states.some((a) => states.some((b) => assignedIn(a) !== null && assignedIn(b) !== null && !isOneBatch(a, b))),
  ),
  reached("the Byzantine replica is exposed", (states) => states.some(({ exposed }) => exposed.length > 0)),
  reached("a certificate is carried over", (states) => states.some(carries)),
  reached("decided in the new view", (states) => states.some((state) => carries(state) && state.executed === 1)),
  reached(
    "decided in both views",
    (states) =>
      states.some(({ view, executed }) => view === 0 && executed === 1) &&
      states.some((state) => carries(state) && state.executed === 1),
  ),
];

function reached(name: string, holds: (states: readonly Pbft["state"][]) => boolean): Property<Replica> {
  return {
    name,
    claim: name,
    when: "sometimes",
    holds: ({ alive, state }: World<{ log: Pbft["state"] }>) => holds(alive.map((node) => state(node).log)),
  };
}

const assignedIn = ({ slots }: Pbft["state"]): Assignment | null => slots[1]?.prePrepare?.value ?? null;
const isOneBatch = (a: Pbft["state"], b: Pbft["state"]): boolean =>
  assignedIn(a)?.view !== assignedIn(b)?.view || assignedIn(a)?.digest === assignedIn(b)?.digest;
const carries = ({ isChanging, newView }: Pbft["state"]): boolean =>
  !isChanging && newView !== null && newView.prePrepares.some(({ value }) => value.digest !== NOTHING);

/**
 * Sends each receiver either the correct message, or the same message for the empty batch. It never sends messages of
 * the types in `kept`.
 */
function twoFaced(liar: NodeId, lies: readonly Message["type"][], kept: readonly Message["type"][] = []) {
  const signer = { self: liar, signatures: idealSignatures(liar) };
  const other = ({ value }: Signed<Assignment>): Assignment => ({ ...value, digest: NOTHING });
  const twin = (message: Message): Message => {
    switch (message.type) {
      case "prePrepare": {
        const prePrepare = sign(signer, prePrepareShape, other(message.prePrepare));
        return { ...message, prePrepare, requests: [] };
      }
      case "prepare":
        return { ...message, prepare: sign(signer, prepareShape, other(message.prepare)) };
      case "commit":
        return { ...message, commit: sign(signer, commitShape, other(message.commit)) };
      case "viewChange": {
        const forgetful = { ...message.viewChange.value, prepared: [] };
        return { ...message, viewChange: sign(signer, viewChangeShape, forgetful) };
      }
      default:
        return message;
    }
  };
  return {
    lie(_to: NodeId, letter: Tagged): readonly Tagged[] {
      const { body } = letter as unknown as { body: Message };
      if (kept.includes(body.type)) return [];
      return lies.includes(body.type) ? [letter, { ...letter, body: twin(body) } as Tagged] : [letter];
    },
  };
}

type Model = ExploreOptions<Replica>;

/** Allows at most one view change. The client is on replica `client`. */
function model(liars: Liars, more: Partial<Model>, log: Partial<PbftOptions> = {}, client = 1): Model {
  const options = { lastView: 1, statusMs: 0, retransmitMs: 1, ...log };
  const made = replicated<Pbft, Partial<PbftOptions>>(pbft, { log: options, client: { retryMs: 0 } });
  const protocol = byzantine(made, new Map(Object.entries(liars).map(([node, how]) => [Number(node), how])));
  return {
    protocol,
    properties: [...protocol.properties.filter(({ when }) => when === "always"), ...milestones],
    nodes: [0, 1, 2, 3],
    network: "inbox",
    timers: "rounds",
    begin: "together",
    asks: (node) => (node === client ? [use] : []),
    ...more,
  };
}

/**
 * Expects a complete search without violations that reaches these milestones. An unreached milestone ends a search
 * under its own name.
 */
function expectSafe(found: Exploration<Replica>, states: number, ...names: readonly string[]): void {
  const witnessed = found.witnesses.map(({ property }) => property.name);
  console.log(`${found.states} states, ${found.transitions} transitions; reached: ${witnessed.join(", ")}`);
  const { verdict, property } = found;
  expect(property?.when ?? "sometimes", `${verdict}: ${property?.name}`).toBe("sometimes");
  expect([found.states, witnessed.toSorted()]).toEqual([states, names.toSorted()]);
}

const CARRIED = ["a certificate is carried over", "decided in the new view"] as const;

describe("pbft: one Byzantine replica of four: every message within bounds", () => {
  it("the primary equivocates and withholds its commits", () => {
    const found = explore(model({ 0: twoFaced(0, ["prePrepare"], ["commit"]) }, { delays: 0 }));
    expectSafe(found, 831, "equivocation", ...CARRIED);
  });

  it("the primary sends one wrong message of any kind", () => {
    const found = explore(model({ 0: { lies: 1 } }, { delays: 0 }));
    expectSafe(found, 1_230, "the Byzantine replica is exposed");
    reaching(found, "receive viewChange", "receive newView", "decided");
  });
});

describe("pbft: one replica of four forges the proof of a view change: every forgery within bounds", () => {
  const early = { delays: 0, timers: "free", maxTimeouts: 2 } as const;
  const forging = (liar: NodeId, name: string) =>
    explore(model({ [liar]: forger(liar, [name]) }, early, { retransmitMs: 0 }, 2));
  const both = [...CARRIED, "decided in both views"];

  const [shortest, ...others] = ["a new view without prepared batches", ...Object.keys(forgeries(1))] as const;
  const states = (name: string): number => (name.startsWith("a new view") ? 9_397 : 6_928);

  it.each([shortest, "a certificate of 2f"])("the next primary sends %s", (name) => {
    expectSafe(forging(1, name), states(name), ...both);
  });

  it.each(others.filter((name) => name !== shortest && name !== "a certificate of 2f"))(
    "the next primary sends %s",
    { tags: ["long"] },
    (name) => expectSafe(forging(1, name), states(name), ...both),
  );

  it.each(["a certificate of 2f", "a certificate signed in another's name"])(
    "a backup sends %s",
    { tags: ["long"] },
    (name) => expectSafe(forging(3, name), 13_175, ...both),
  );
});

describe("pbft: one Byzantine replica of four: long searches", { tags: ["long"] }, () => {
  it("the primary equivocates with pre-prepares and commits", () => {
    const found = explore(model({ 0: twoFaced(0, ["prePrepare", "commit"]) }, { delays: 0 }));
    expectSafe(found, 6_565, "equivocation", ...CARRIED);
  });

  it("the same with a delay and withheld commits", () => {
    const found = explore(model({ 0: twoFaced(0, ["prePrepare"], ["commit"]) }, { delays: 1 }));
    expectSafe(found, 10_981, "equivocation", ...CARRIED, "decided in both views");
  });

  it("the same, and two timers expire at any time", () => {
    const more = { delays: 0, timers: "free", maxTimeouts: 2 } as const;
    const found = explore(model({ 0: twoFaced(0, ["prePrepare"], ["commit"]) }, more, { retransmitMs: 0 }));
    expectSafe(found, 10_521, "equivocation", ...CARRIED, "decided in both views");
  });

  it("the primary sends two wrong messages of any kind", { tags: ["larger"] }, () => {
    const found = explore(model({ 0: { lies: 2 } }, { delays: 0 }));
    expectSafe(found, 44_786, "the Byzantine replica is exposed", ...CARRIED);
  });

  it("the next primary is Byzantine, and two timers expire at any time", () => {
    const more = { delays: 0, timers: "free", maxTimeouts: 2 } as const;
    const lying = twoFaced(1, ["viewChange", "commit"], ["newView"]);
    const found = explore(model({ 1: lying }, more, { retransmitMs: 0 }, 2));
    expectSafe(found, 33_904, ...CARRIED, "decided in both views");
  });
});

describe("pbft: one Byzantine replica of four: random runs", () => {
  const lies = ["prePrepare", "prepare", "commit", "viewChange"] as const;
  const runs = (liar: NodeId, how: ByzantineBehaviour, strategy: "random" | "pct" | "swarm", count: number) =>
    walk<Replica>({
      ...model({ [liar]: how }, { network: "bag", timers: "free", maxTimeouts: 4 }),
      asks: () => [use],
      strategy,
      seed: 1,
      runs: count,
    });

  it.each(["random", "pct", "swarm"] as const)("%s: no property is violated", (strategy) => {
    expect(reaching(runs(0, twoFaced(0, lies), strategy, 4), "receive viewChange").property).toBeNull();
  });

  it.each(["random", "pct", "swarm"] as const)(
    "%s, many: no property is violated, in new views too",
    { tags: ["long"] },
    (strategy) => {
      const found = runs(0, twoFaced(0, lies), strategy, 12);
      expect(reaching(found, "receive viewChange", "receive newView", "decided").property).toBeNull();
      expect(runs(1, twoFaced(1, lies), strategy, 6).property).toBeNull();
    },
  );
});

describe("pbft: violations without an assumption", () => {
  it("two Byzantine replicas of four: two batches are prepared for one number", () => {
    const lies = ["prePrepare", "prepare", "commit"] as const;
    const found = explore(model({ 0: twoFaced(0, lies), 3: twoFaced(3, lies) }, { delays: 2 }));
    expect([found.verdict, found.property?.name]).toEqual(["violated", "prepared certificates"]);
  });
});

describe("pbft: liveness", () => {
  const mute = (liars: readonly NodeId[], more: Partial<Model> = {}): Model => {
    const asked = model(Object.fromEntries(liars.map((liar) => [liar, "mute"])), more);
    return { ...asked, properties: asked.protocol.properties.filter(({ name }) => name === "termination") };
  };

  it("with a silent primary, fairness implies that a request is executed in the next view", () => {
    const found = reaching(explore(mute([0])), "receive newView", "decided");
    expect([found.verdict, found.states]).toEqual(["holds", 6_235]);
  });

  it("the same with links that are only FIFO", { tags: ["long"] }, () => {
    const found = reaching(explore(mute([0], { network: "fifo" })), "receive newView", "decided");
    expect([found.verdict, found.states]).toEqual(["holds", 32_479]);
  });

  it("with two silent replicas of four there is a run without any execution", () => {
    const found = explore(mute([0, 3]));
    expect([found.verdict, found.property?.name]).toEqual(["violated", "termination"]);
    expect(found.loop).not.toBeNull();
  });

  /** Three message delays take longer than the first timeouts. */
  function views(maxViewChangeMs: number): { view: number; executed: number } {
    const log = { viewChangeMs: 300, maxViewChangeMs, retransmitMs: 300 };
    const made = replicated<Pbft, Partial<PbftOptions>>(pbft, { log, client: { retryMs: 2_000 } });
    const sim = simulation<Replica>({ protocol: made, nodes: [0, 1, 2, 3], seed: 1, delayMs: 400 });
    for (const node of [0, 1, 2, 3]) sim.start(node);
    sim.command(1, use);
    sim.run(20_000);
    const { view, executed } = sim.world.state(2).log;
    return { view, executed };
  }

  it("doubling timeouts eventually exceed the delays; constant ones cause view after view without progress", () => {
    const doubling = views(8_000);
    expect(doubling.executed).toBeGreaterThan(0);
    expect(doubling.view).toBeLessThan(8);
    const staying = views(300);
    expect(staying.executed).toBe(0);
    expect(staying.view).toBeGreaterThan(10);
  });
});
