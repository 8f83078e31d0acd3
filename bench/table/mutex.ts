/**
 * What entry, hand-over and bandwidth of each mutual exclusion cost: messages, and message times where the source counts
 * time. Coulouris et al. §15.2: client delay from asking to being inside, synchronization delay from the exit of one to
 * the entry of the next, bandwidth for entry and exit together.
 */
import type { NodeId, Protocol } from "../../src/core/protocol.ts";
import { centralServer } from "../../src/protocols/mutex/central-server.ts";
import { maekawa } from "../../src/protocols/mutex/maekawa.ts";
import { maekawaSanders } from "../../src/protocols/mutex/maekawa-sanders.ts";
import type { Mutex } from "../../src/protocols/mutex/parts/user.ts";
import { electorates, voteCount } from "../../src/protocols/mutex/parts/voting-sets.ts";
import { ricartAgrawala } from "../../src/protocols/mutex/ricart-agrawala.ts";
import { tokenRing } from "../../src/protocols/mutex/token-ring.ts";
import type { Claim } from "./figure.ts";
import { range, section } from "./sections.ts";

/** An idle holder passes the token on at once, as far as message times go. */
const HARDLY = 1e-9;
const WANTING = 9;
const ENTRIES = 3;

/** Nodes at every distance: all of a small ring, some of a large one. */
const places = (nodes: number): number[] =>
  range(1, nodes - 1).filter((place) => nodes <= 64 || place % 111 === 0 || place === 1 || place === nodes - 1);

/** Who asks first, and who asks while it is inside. */
type Pair = readonly [holder: NodeId, next: NodeId];

/** For algorithms that come to rest: one node alone, and one that waits for another. */
function entryOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): { messages: number; time: number } {
  return section(mutex(), nodes).enter(nodes - 1);
}

function bandwidthOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): number {
  const used = section(mutex(), nodes);
  used.enter(nodes - 1);
  used.leave(nodes - 1);
  return used.sim.messages.total;
}

function handOverOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number, [holder, next]: Pair) {
  const used = section(mutex(), nodes);
  used.enter(holder);
  used.ask(next);
  return used.handOver(holder, next);
}

/** The mean for each entry when `WANTING` nodes, or all there are, want in again and again. */
function crowdedOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): number {
  const wanting = Math.min(nodes, WANTING);
  const used = section(mutex(), nodes, { stay: 1, delay: [0.5, 1.5], seed: nodes });
  for (const node of range(0, wanting - 1))
    used.sim.command(node, { type: "user", body: { type: "use", entries: ENTRIES } } as never);
  used.sim.run();
  return used.sim.messages.total / (wanting * ENTRIES);
}

const CROWD = `up to ${WANTING} nodes that want in ${ENTRIES} times each`;

function centralServerClaims(): Claim[] {
  const protocol = "central-server";
  const make = (): ReturnType<typeof centralServer> => centralServer();
  const pair = (nodes: number): Pair => [nodes - 1, nodes - 2];
  return [
    {
      protocol,
      what: "entry",
      unit: "messages",
      formula: "2",
      expected: () => 2,
      measure: (n) => entryOf(make, n).messages,
    },
    {
      protocol,
      what: "client delay",
      unit: "message times",
      formula: "2",
      expected: () => 2,
      measure: (n) => entryOf(make, n).time,
    },
    {
      protocol,
      what: "hand-over",
      unit: "messages",
      formula: "2",
      expected: () => 2,
      measure: (n) => handOverOf(make, n, pair(n)).messages,
    },
    {
      protocol,
      what: "hand-over",
      unit: "message times",
      formula: "2",
      expected: () => 2,
      measure: (n) => handOverOf(make, n, pair(n)).time,
    },
    {
      protocol,
      what: "bandwidth",
      unit: "messages",
      formula: "3",
      expected: () => 3,
      measure: (n) => bandwidthOf(make, n),
    },
  ];
}

function tokenRingClaims(): Claim[] {
  const protocol = "token-ring";
  const ring = (nodes: number) => section(tokenRing({ idleMs: HARDLY }), nodes, { mustStart: true });
  const enter = (nodes: number, place: number) => ring(nodes).enter(place);
  function handOver(nodes: number, place: number) {
    const used = ring(nodes);
    used.enter(0);
    used.ask(place);
    return used.handOver(0, place);
  }
  /** The holder leaves and wants back in: the token goes all the way round. */
  function comeBack(nodes: number): number {
    const used = section(tokenRing({ idleMs: HARDLY }), nodes, { mustStart: true, stay: 1 });
    const before = used.enter(0).messages;
    used.sim.command(0, { type: "user", body: { type: "use", entries: 1 } } as never);
    while (used.sim.world.state(0).user.entries < 2) used.sim.step();
    return used.sim.messages.total - before;
  }
  function whileInside(nodes: number): number {
    const used = ring(nodes);
    used.enter(0);
    used.ask(1);
    return used.sim.messages.total;
  }
  const all = (nodes: number): number[] => places(nodes);
  return [
    {
      protocol,
      what: "entry",
      unit: "messages",
      formula: "0 … N",
      expected: (n) => [0, n],
      measure: (n) => [0, ...all(n)].map((place) => enter(n, place).messages),
    },
    {
      protocol,
      what: "client delay",
      unit: "message times",
      formula: "0 … N",
      expected: (n) => [0, n],
      measure: (n) => [0, ...all(n)].map((place) => enter(n, place).time),
    },
    {
      protocol,
      what: "hand-over",
      unit: "messages",
      formula: "1 … N − 1",
      expected: (n) => [1, n - 1],
      measure: (n) => all(n).map((place) => handOver(n, place).messages),
    },
    {
      protocol,
      what: "hand-over",
      unit: "message times",
      formula: "1 … N − 1",
      expected: (n) => [1, n - 1],
      measure: (n) => all(n).map((place) => handOver(n, place).time),
    },
    {
      protocol,
      what: "hand-over to the last holder itself",
      unit: "messages",
      formula: "N",
      expected: (n) => n,
      measure: comeBack,
    },
    {
      protocol,
      what: "bandwidth while one is inside",
      unit: "messages",
      formula: "0",
      expected: () => 0,
      measure: whileInside,
    },
  ];
}

function ricartAgrawalaClaims(): Claim[] {
  const protocol = "ricart-agrawala";
  const make = (): ReturnType<typeof ricartAgrawala> => ricartAgrawala();
  const formula = "2(N − 1)";
  const expected = (n: number): number => 2 * (n - 1);
  return [
    { protocol, what: "entry", unit: "messages", formula, expected, measure: (n) => entryOf(make, n).messages },
    {
      protocol,
      what: "client delay",
      unit: "message times",
      formula: "2",
      expected: () => 2,
      measure: (n) => entryOf(make, n).time,
    },
    {
      protocol,
      what: "hand-over",
      unit: "messages",
      formula: "1",
      expected: () => 1,
      measure: (n) => handOverOf(make, n, [0, 1]).messages,
    },
    {
      protocol,
      what: "hand-over",
      unit: "message times",
      formula: "1",
      expected: () => 1,
      measure: (n) => handOverOf(make, n, [0, 1]).time,
    },
    { protocol, what: "bandwidth", unit: "messages", formula, expected, measure: (n) => bandwidthOf(make, n) },
    {
      protocol,
      what: `bandwidth, ${CROWD}`,
      unit: "messages an entry",
      formula,
      expected,
      measure: (n) => crowdedOf(make, n),
      maxNodes: 64,
    },
    {
      protocol: "ricart-agrawala, roucairol-carvalho",
      what: `bandwidth, ${CROWD}`,
      unit: "messages an entry",
      formula: "0 … 2(N − 1)",
      expected: (n) => [0, 2 * (n - 1)],
      measure: (n) => crowdedOf(() => ricartAgrawala({ keepsPermissions: true }), n),
      maxNodes: 64,
    },
    {
      protocol: "ricart-agrawala, roucairol-carvalho",
      what: "bandwidth, the same node again",
      unit: "messages",
      formula: "0",
      expected: () => 0,
      measure(n) {
        const used = section(ricartAgrawala({ keepsPermissions: true }), n);
        used.enter(0);
        used.leave(0);
        const before = used.sim.messages.total;
        used.enter(0);
        used.leave(0);
        return used.sim.messages.total - before;
      },
    },
  ];
}

/** The members of both sets but for `next`: each of them votes for it when the holder has left. */
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

function maekawaClaims<M extends Mutex>(protocol: string, make: () => Protocol<M>): Claim[] {
  const others = (n: number): number => voteCount(n) - 1;
  const pair: Pair = [0, 1];
  return [
    {
      protocol,
      what: "entry",
      unit: "messages",
      formula: "2(K − 1), K ≈ √N",
      expected: (n) => 2 * others(n),
      measure: (n) => entryOf(make, n).messages,
    },
    {
      protocol,
      what: "client delay",
      unit: "message times",
      formula: "2",
      expected: () => 2,
      measure: (n) => entryOf(make, n).time,
    },
    {
      protocol,
      what: "hand-over",
      unit: "messages",
      formula: "K − 1 releases, and a vote of each shared voter",
      expected: (n) => others(n) + votesToCome(n, pair),
      measure: (n) => handOverOf(make, n, pair).messages,
    },
    {
      protocol,
      what: "hand-over",
      unit: "message times",
      formula: "1 … 2",
      expected: () => [1, 2],
      measure: (n) => handOverOf(make, n, pair).time,
    },
    {
      protocol,
      what: "bandwidth",
      unit: "messages",
      formula: "3(K − 1)",
      expected: (n) => 3 * others(n),
      measure: (n) => bandwidthOf(make, n),
    },
  ];
}

function sandersClaims(): Claim[] {
  const protocol = "maekawa-sanders";
  const make = (): ReturnType<typeof maekawaSanders> => maekawaSanders();
  const crowded: Claim = {
    protocol,
    what: `bandwidth, ${CROWD}`,
    unit: "messages an entry",
    formula: "3(K − 1) … 5(K − 1)",
    expected: (n) => [3 * (voteCount(n) - 1), 5 * (voteCount(n) - 1)],
    measure: (n) => crowdedOf(make, n),
    maxNodes: 64,
  };
  return [...maekawaClaims(protocol, make), crowded];
}

export const mutexClaims: readonly Claim[] = [
  ...centralServerClaims(),
  ...tokenRingClaims(),
  ...ricartAgrawalaClaims(),
  ...maekawaClaims("maekawa", () => maekawa()),
  ...sandersClaims(),
];
