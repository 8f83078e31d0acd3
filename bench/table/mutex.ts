/**
 * The cost of entry, hand-over and bandwidth for each mutual exclusion algorithm: messages, and also message times if
 * the source counts time. Coulouris et al. §15.2: client delay is from the request until the node is inside,
 * synchronization delay is from one node's exit to the next one's entry, and bandwidth is for entry and exit together.
 */
import type { NodeId, Protocol } from "../../src/core/protocol.ts";
import { centralServer } from "../../src/protocols/mutex/central-server.ts";
import { electedServer } from "../../src/protocols/mutex/elected-server/elected-server.ts";
import { epochTokenRing } from "../../src/protocols/mutex/epoch-token-ring/epoch-token-ring.ts";
import type { Mutex } from "../../src/protocols/mutex/family/workload.ts";
import { maekawa } from "../../src/protocols/mutex/maekawa.ts";
import { maekawaSanders } from "../../src/protocols/mutex/maekawa-sanders/maekawa-sanders.ts";
import { electorates, voteCount } from "../../src/protocols/mutex/parts/voting-sets.ts";
import { raymond, type Tree } from "../../src/protocols/mutex/raymond.ts";
import { ricartAgrawala } from "../../src/protocols/mutex/ricart-agrawala/ricart-agrawala.ts";
import { roucairolCarvalho } from "../../src/protocols/mutex/ricart-agrawala/roucairol-carvalho.ts";
import { suzukiKasami } from "../../src/protocols/mutex/suzuki-kasami.ts";
import { tokenRing } from "../../src/protocols/mutex/token-ring.ts";
import { type Cost, costOf, declared, declaredFormula, exactly, formula, range } from "./cost.ts";
import {
  CROWD,
  costsAtRest,
  crowdedOf,
  type Figures,
  HARDLY,
  type Pair,
  places,
  type Section,
  section,
  usedSection,
} from "./sections.ts";

const messagesOf = (figures: readonly Figures[]): number[] => figures.map(({ messages }) => messages);
const timesOf = (figures: readonly Figures[]): number[] => figures.map(({ time }) => time);

const centralServerCosts = (): Cost[] =>
  costsAtRest("central-server", () => centralServer(), {
    pair: (nodes) => [nodes - 1, nodes - 2],
    entry: exactly(2),
    handOver: exactly(2),
    handOverTime: exactly(2),
    bandwidth: declaredFormula(centralServer(), "one entry and exit of a node other than the server", "3"),
  });

function tokenRingCosts(): Cost[] {
  const cost = costOf("token-ring");
  const ring = (nodes: number, stay?: number) =>
    section(tokenRing({ idleMs: HARDLY }), nodes, { mustStart: true, ...(stay === undefined ? {} : { stay }) });
  const entries = (n: number): Figures[] => [0, ...places(n)].map((place) => ring(n).enter(place));
  const handOvers = (n: number): Figures[] => places(n).map((place) => ring(n).handOver(0, place));
  /**
   * Returns the messages needed if the holder leaves and requests again, so that the token travels all the way around.
   */
  function comeBack(nodes: number): number {
    const used = ring(nodes, 1);
    const before = used.enter(0).messages;
    used.sim.command(0, { type: "workload", body: { type: "use", entries: 1 } } as never);
    while (used.sim.world.state(0).workload.entries < 2) used.sim.step();
    return used.sim.messages.total - before;
  }
  function whileInside(nodes: number): number {
    const used = ring(nodes);
    used.enter(0);
    used.ask(1);
    return used.sim.messages.total;
  }
  const entry = formula("0 … N", (n) => [0, n]);
  const handOver = formula("1 … N − 1", (n) => [1, n - 1]);
  return [
    cost("entry", "messages", entry, (n) => messagesOf(entries(n))),
    cost("client delay", "message times", entry, (n) => timesOf(entries(n))),
    cost("hand-over", "messages", handOver, (n) => messagesOf(handOvers(n))),
    cost("hand-over", "message times", handOver, (n) => timesOf(handOvers(n))),
    cost(
      "hand-over to the last holder itself",
      "messages",
      formula("N", (n) => n),
      comeBack,
    ),
    cost("bandwidth while one is inside", "messages", exactly(0), whileInside),
  ];
}

/** Returns the cost of another entry by the node that was inside last. */
function bandwidthAgainOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): number {
  const used = section(mutex(), nodes);
  used.use(nodes - 1);
  const before = used.spent;
  used.use(nodes - 1);
  return used.spent - before;
}

const crowd = `bandwidth, ${CROWD}`;
const AGAIN = "bandwidth, the same node again";

function ricartAgrawalaCosts(): Cost[] {
  const make = () => ricartAgrawala();
  const kept = () => roucairolCarvalho();
  const all = declaredFormula(make(), "one entry and exit", "2(N − 1)");
  const unkept = declared(kept(), "one entry and exit without cached permissions");
  const [cost, costKept] = [costOf("ricart-agrawala"), costOf("ricart-agrawala, roucairol-carvalho")];
  return [
    ...costsAtRest("ricart-agrawala", make, {
      pair: () => [0, 1],
      entry: all,
      handOver: exactly(1),
      handOverTime: exactly(1),
      bandwidth: all,
    }),
    cost(crowd, "messages per entry", all, (n) => crowdedOf(make, n), 64),
    costKept(
      crowd,
      "messages per entry",
      formula("0 … 2(N − 1)", (n) => [0, unkept(n)]),
      (n) => crowdedOf(kept, n),
      64,
    ),
    costKept(AGAIN, "messages", exactly(0), (n) => bandwidthAgainOf(kept, n)),
  ];
}

function suzukiKasamiCosts(): Cost[] {
  const cost = costOf("suzuki-kasami");
  const make = () => suzukiKasami();
  const when = "one entry and exit of a node without the privilege";
  const all = declaredFormula(make(), when, "N");
  const atMost = formula("0 … N", (n) => [0, declared(make(), when)(n)]);
  return [
    ...costsAtRest("suzuki-kasami", make, {
      pair: () => [0, 1],
      entry: all,
      handOver: exactly(1),
      handOverTime: exactly(1),
      bandwidth: all,
    }),
    cost(crowd, "messages per entry", atMost, (n) => crowdedOf(make, n), 64),
    cost(AGAIN, "messages", exactly(0), (n) => bandwidthAgainOf(make, n)),
  ];
}

/**
 * Returns the costs of Raymond's algorithm. The node at one end of the longest path was inside last; then nodes at
 * every distance request entry.
 */
function raymondCosts(tree: Tree, protocol: string, twice: string, once: string): Cost[] {
  const cost = costOf(protocol);
  const make = () => raymond({ tree });
  const worst = declared(make(), "one entry and exit of a node as far from the privilege as the tree allows");
  const deepest = (n: number): number => (tree === "binary" ? 2 ** Math.floor(Math.log2(n)) - 1 : n - 1);
  function entries(nodes: number): (Figures & { readonly altogether: number })[] {
    const used = section(make(), nodes);
    return [0, ...places(nodes)].map((place) => {
      used.use(deepest(nodes));
      const before = used.spent;
      const { messages, time } = used.enter(place);
      used.leave(place);
      return { messages, time, altogether: used.spent - before };
    });
  }
  const handOvers = (n: number): Figures[] =>
    [0, ...places(n)]
      .filter((place) => place !== deepest(n))
      .map((place) => section(make(), n).handOver(deepest(n), place));
  const up = formula(`0 … ${twice}`, (n) => [0, worst(n)]);
  const over = formula(`1 … ${once}`, (n) => [1, worst(n) / 2]);
  return [
    cost("entry", "messages", up, (n) => messagesOf(entries(n))),
    cost("client delay", "message times", up, (n) => timesOf(entries(n))),
    cost("hand-over", "messages", over, (n) => messagesOf(handOvers(n))),
    cost("hand-over", "message times", over, (n) => timesOf(handOvers(n))),
    cost("bandwidth", "messages", up, (n) => entries(n).map(({ altogether }) => altogether)),
    cost(crowd, "messages per entry", up, (n) => crowdedOf(make, n), 64),
  ];
}

/**
 * Returns the number of nodes that are in both voting sets, except `next`. Each of them votes for `next` once the
 * holder has left.
 */
function votesToCome(nodes: number, [holder, next]: Pair): number {
  const ids = range(0, nodes - 1);
  const setOf = electorates();
  const set = (node: NodeId): readonly NodeId[] =>
    setOf(
      node,
      ids.filter((id) => id !== node),
    );
  const shared = set(holder).filter((node) => set(next).includes(node));
  return shared.filter((node) => node !== next).length;
}

/** Returns the costs of algorithms with voting sets of size K. */
function maekawaCosts<M extends Mutex>(protocol: string, make: () => Protocol<M>, when: string): Cost[] {
  const others = (n: number): number => voteCount(n) - 1;
  const pair: Pair = [0, 1];
  return costsAtRest(protocol, make, {
    pair: () => pair,
    entry: formula("2(K − 1), K ≈ √N", (n) => 2 * others(n)),
    handOver: formula("K − 1 releases, and a vote of each shared voter", (n) => others(n) + votesToCome(n, pair)),
    handOverTime: formula("1 … 2", () => [1, 2]),
    bandwidth: declaredFormula(make(), when, "3(K − 1)"),
  });
}

function sandersCosts(): Cost[] {
  const make = () => maekawaSanders();
  const when = "one entry and exit without contention";
  const crowded = formula("3(K − 1) … 5(K − 1)", (n) => [declared(make(), when)(n), 5 * (voteCount(n) - 1)]);
  return [
    ...maekawaCosts("maekawa-sanders", make, when),
    costOf("maekawa-sanders")(crowd, "messages per entry", crowded, (n) => crowdedOf(make, n), 64),
  ];
}

/** Returns the costs of the elected server without faults: the lock service's messages, excluding its election. */
function electedServerCosts(): Cost[] {
  const cost = costOf("elected-server", 64);
  /** Shorter than the time to the next renewal. */
  const stay = 150;
  const counted = ["request", "grant", "release", "renew", "renewed", "withdraw", "recall", "empty"];
  function served(nodes: number) {
    const server = electedServer({ workload: { stayMs: stay, restMs: 1 } }) as never;
    // When `settle` ends, there is a leader, and all grants from an earlier leader have expired.
    const used: Section<Mutex> = usedSection<Mutex>(server, nodes, { mustStart: true, settle: 3_000, counted });
    const serves = (node: NodeId): boolean =>
      (used.sim.world.state(node) as unknown as { mutex: { service: unknown } }).mutex.service !== null;
    const [holder, next] = used.sim.world.alive.filter((node) => !serves(node)) as [NodeId, NodeId];
    // The first request in a term makes the server ask for the grants from earlier terms.
    used.use(holder);
    return { used, holder, next, before: used.spent };
  }
  const enter = (nodes: number): Figures => {
    const { used, holder } = served(nodes);
    return used.enter(holder);
  };
  const handOver = (nodes: number): Figures => {
    const { used, holder, next } = served(nodes);
    return used.handOver(holder, next);
  };
  function bandwidth(nodes: number): number {
    const { used, holder, before } = served(nodes);
    used.use(holder);
    return used.spent - before;
  }
  const when = "one entry and exit of a node other than the server, within renewMs";
  return [
    cost("entry", "messages", exactly(2), (n) => enter(n).messages),
    cost("client delay", "message times", exactly(2), (n) => enter(n).time),
    cost("hand-over", "messages", exactly(2), (n) => handOver(n).messages),
    cost("hand-over", "message times", exactly(2), (n) => handOver(n).time),
    cost("bandwidth", "messages", declaredFormula(electedServer(), when, "3"), bandwidth),
  ];
}

/**
 * Returns the costs of the epoch token ring: without faults, if a round takes less time than a renewal; and for a new
 * token.
 */
function epochTokenRingCosts(): Cost[] {
  const cost = costOf("epoch-token-ring", 64);
  const ring = (nodes: number, stay: number) =>
    section(epochTokenRing({ idleMs: HARDLY, renewMs: 1_000_000, leaseMs: 3_000_000 }), nodes, {
      mustStart: true,
      stay,
      counted: ["token"],
    });
  /** Returns the cost of an entry for each distance from the token to the requesting node. */
  const entries = (n: number): Figures[] =>
    [0, ...places(n)].map((place) => {
      const used = ring(n, 10_000);
      used.use(0);
      while (used.spent % n !== 0) used.sim.step(); // Run until the token is back at the first node in the ring.
      return used.enter(place);
    });
  const handOvers = (n: number): Figures[] => places(n).map((place) => ring(n, 10_000).handOver(0, place));
  function toMakeAToken(nodes: number): number {
    const { sim } = ring(nodes, 1);
    sim.run(2);
    return (sim.messages.byType.requestVote ?? 0) + (sim.messages.byType.voteGranted ?? 0);
  }
  const confirmed = ", and 2 until a majority has confirmed";
  const delay = formula(`0 … N${confirmed}`, (n) => [0, n + 2]);
  const handOverTime = formula(`1 … N − 1${confirmed}`, (n) => [3, n + 1]);
  const token = declaredFormula(epochTokenRing(), "a new token, or an entry after a slow round", "2(N − 1)");
  return [
    cost(
      "entry",
      "messages",
      formula("0 … N", (n) => [0, n]),
      (n) => messagesOf(entries(n)),
    ),
    cost("client delay", "message times", delay, (n) => timesOf(entries(n))),
    cost(
      "hand-over",
      "messages",
      formula("1 … N − 1", (n) => [1, n - 1]),
      (n) => messagesOf(handOvers(n)),
    ),
    cost("hand-over", "message times", handOverTime, (n) => timesOf(handOvers(n))),
    cost("a new token", "messages", token, toMakeAToken, Number.POSITIVE_INFINITY),
  ];
}

export const mutexCosts: readonly Cost[] = [
  ...centralServerCosts(),
  ...tokenRingCosts(),
  ...ricartAgrawalaCosts(),
  ...suzukiKasamiCosts(),
  ...raymondCosts("binary", "raymond", "2D", "D"),
  ...raymondCosts("star", "raymond, star", "4", "2"),
  ...raymondCosts("line", "raymond, line", "2(N − 1)", "N − 1"),
  // coterie new: mutex
  ...maekawaCosts("maekawa", () => maekawa(), "one entry and exit"),
  ...sandersCosts(),
  ...electedServerCosts(),
  ...epochTokenRingCosts(),
];
