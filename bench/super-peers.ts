/**
 * Compares super-peers chosen by a hash table and by moving tokens with the same number of random ones, according to
 * the four requirements in Tanenbaum & van Steen §6.5.3: distance to a super-peer, even distribution, number, and nodes
 * per super-peer.
 *
 *     npx coterie bench super-peers [--nodes N] [--share S] [--quick] [--json]
 */
import type { NodeId } from "../src/core/protocol.ts";
import { type Random, random } from "../src/core/random.ts";
import { type SuperPeerDht, superPeerDht } from "../src/protocols/overlay/super-peer-dht/super-peer-dht.ts";
import { convergedRing, identifierRing } from "../src/protocols/overlay/super-peer-dht/vocabulary.ts";
import { type SuperPeerTokens, superPeerTokens } from "../src/protocols/overlay/super-peer-tokens/super-peer-tokens.ts";
import { type Point, space } from "../src/protocols/overlay/super-peer-tokens/vocabulary.ts";
import { simulation } from "../src/sim/simulation.ts";
import { commandLine } from "./command-line.ts";
import { printTable } from "./results.ts";

const FULL = 10_000;
const QUICK = 1_000;
/** A super-peer should serve no more nodes than this multiple of the mean. */
const LIMIT = 2;

const { values, refuse, whole } = commandLine("super-peers", {
  nodes: { such: "N", help: `how many there are, ${FULL} by default` },
  share: { such: "S", default: "0.01", help: "how many of them should be super-peers, 0.01 by default" },
  quick: { help: `${QUICK} nodes` },
  json: { help: "for machines" },
});

const count = whole("nodes", values.nodes ?? String(values.quick ? QUICK : FULL), 20, 50_000);
const share = Number(values.share);
if (!(share > 0 && share <= 0.5 && share * count >= 2))
  refuse(`expected --share to be at most 0.5, and at least two nodes, got ${values.share}`);
const nodes: readonly NodeId[] = Array.from({ length: count }, (_, i) => i);
const limit = LIMIT / share;

/** Each node's super-peer. */
type Assignment = ReadonlyMap<NodeId, NodeId>;

/** The figures for one method. */
interface Figures {
  /**
   * The mean distance from a node to its super-peer in the space. In two dimensions, the most distant points are √2 / 2
   * apart.
   */
  readonly distance: number;
  readonly distanceP95: number;
  /**
   * The standard deviation of the sizes of the territories divided by their mean, on the overlay that the method uses.
   */
  readonly unevenness: number;
  readonly superPeers: number;
  /** The fraction of nodes that are super-peers. */
  readonly share: number;
  /** The mean number of nodes that a super-peer serves, including itself. */
  readonly load: number;
  readonly mostLoad: number;
  /** The fraction of super-peers that serve more nodes than the limit. */
  readonly overLimit: number;
}

const plane = space({ dimensions: 2, positions: [] });

function figuresOf(served: Assignment, territories: readonly number[]): Figures {
  const loads = new Map<NodeId, number>();
  const distances: number[] = [];
  for (const [node, superPeer] of served) {
    loads.set(superPeer, (loads.get(superPeer) ?? 0) + 1);
    distances.push(plane.distance(plane.pointOf(node), plane.pointOf(superPeer)));
  }
  distances.sort((a, b) => a - b);
  const middle = mean(territories);
  return {
    distance: mean(distances),
    distanceP95: distances[Math.floor(0.95 * distances.length)] as number,
    unevenness: Math.sqrt(mean(territories.map((size) => (size - middle) ** 2))) / middle,
    superPeers: territories.length,
    share: territories.length / served.size,
    load: served.size / territories.length,
    mostLoad: Math.max(...loads.values()),
    overLimit: [...loads.values()].filter((load) => load > limit).length / territories.length,
  };
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
}

function nearest(point: Point, chosen: readonly NodeId[]): NodeId {
  let [best, least] = [chosen[0] as NodeId, Number.POSITIVE_INFINITY];
  for (const each of chosen) {
    const distance = plane.distance(point, plane.pointOf(each));
    if (distance < least) [best, least] = [each, distance];
  }
  return best;
}

/** Estimates the area of the plane that is closest to each chosen node, using a grid of points. */
function cellsOf(chosen: readonly NodeId[], perSide = 100): number[] {
  const counts = new Map<NodeId, number>(chosen.map((node) => [node, 0]));
  for (let i = 0; i < perSide ** 2; i++) {
    const point = [((i % perSide) + 0.5) / perSide, (Math.floor(i / perSide) + 0.5) / perSide];
    const owner = nearest(point, chosen);
    counts.set(owner, (counts.get(owner) as number) + 1);
  }
  return [...counts.values()];
}

/** Returns the distance from each position on the ring to the next. */
function arcsOf(places: readonly number[], circle: number): number[] {
  const sorted = places.toSorted((a, b) => a - b);
  return sorted.map((place, i) => ((sorted[i + 1] ?? (sorted[0] as number) + circle) - place) % circle || circle);
}

const IDENTIFIER_BITS = 24;
const ring = identifierRing({ identifierBits: IDENTIFIER_BITS, reservedBits: 0, identifiers: [] });
const DELAY_MS = 10;
const ROUND_MS = 500;
const PLACEMENTS = 20;

/** Measures super-peers chosen by a hash table on a converged ring: three rounds for all nodes, then lookups. */
function dht() {
  const reservedBits = Math.round(Math.log2(share * nodes.length));
  const hops: number[] = [];
  const sim = simulation<SuperPeerDht>({
    protocol: superPeerDht({ members: nodes, identifierBits: IDENTIFIER_BITS, reservedBits, roundMs: ROUND_MS }),
    nodes,
    seed: 1,
    delayMs: DELAY_MS,
    properties: "at the end",
    onEvent: (_at, _node, event) => event.type === "found" && hops.push(event.hops),
  });
  for (const node of nodes) sim.wake(node);
  const lookUp = (keyOf: (node: NodeId) => number): number => {
    hops.length = 0;
    for (const node of nodes) sim.command(node, { type: "find", key: keyOf(node) });
    sim.run();
    if (hops.length !== nodes.length) throw new Error(`expected ${nodes.length} lookups to end, got ${hops.length}`);
    return mean(hops);
  };
  const chance = random(1);
  const reserved = identifierRing({ identifierBits: IDENTIFIER_BITS, reservedBits, identifiers: [] });
  const any = lookUp(() => chance.below(2 ** IDENTIFIER_BITS));
  const ownRegion = lookUp((node) => reserved.reservedKey(node));
  const before = sim.messages.total;
  const rounds = 3;
  for (const node of nodes) sim.command(node, { type: "call" });
  sim.run(sim.now + rounds * ROUND_MS - 1);
  requireRight(sim.verdict());
  const served = new Map(nodes.map((node) => [node, sim.world.state(node).superPeer as NodeId]));
  return {
    figures: figuresOf(served, arcs([...new Set(served.values())])),
    /** The mean number of hops in a lookup, for any identifier and for the beginning of the node's own region. */
    hops: { any, ownRegion, formula: Math.log2(nodes.length) / 2 },
    /** Messages per node and round, once all nodes know their super-peers. */
    messages: (sim.messages.total - before) / nodes.length / rounds,
  };
}

/** After this many rounds without a move, the tokens are considered settled. */
const CALM_ROUNDS = 30;
const MAX_ROUNDS = 400;

function tokens() {
  const sim = simulation<SuperPeerTokens>({
    protocol: superPeerTokens({ members: nodes, share, roundMs: ROUND_MS }),
    nodes,
    seed: 1,
    delayMs: DELAY_MS,
    properties: "at the end",
  });
  for (const node of nodes) sim.start(node);
  const held = (): number => nodes.filter((node) => sim.world.state(node).token !== null).length;
  const before = held();
  let [moves, lastMove, rounds] = [0, 0, 0];
  while (rounds < lastMove + CALM_ROUNDS && rounds < MAX_ROUNDS) {
    rounds += 1;
    sim.run(rounds * ROUND_MS - 1);
    const taken = sim.messages.byType.taken ?? 0;
    if (taken > moves) lastMove = rounds;
    moves = taken;
  }
  requireRight(sim.verdict());
  const served = new Map(nodes.map((node) => [node, sim.world.state(node).superPeer as NodeId]));
  const superPeers = [...new Set(served.values())];
  const atNearest = nodes.filter((node) => served.get(node) === nearest(plane.pointOf(node), superPeers));
  return {
    figures: figuresOf(served, cellsOf(superPeers)),
    /** The fraction of nodes that use the closest super-peer. */
    servedByNearest: atNearest.length / nodes.length,
    lastMove,
    rounds,
    movesPerToken: moves / before,
    tokens: { before, after: held() },
    messages: sim.messages.total / nodes.length / rounds,
  };
}

/** Measures random super-peers, with each node served by the closest one. */
function byLotInSpace(chosen: readonly NodeId[]): Figures {
  const served = new Map(nodes.map((node) => [node, nearest(plane.pointOf(node), chosen)]));
  return figuresOf(served, cellsOf(chosen));
}

/** Measures random super-peers, with each node served by the previous one on the ring. */
function byLotOnRing(chosen: readonly NodeId[]): Figures {
  const members = convergedRing(ring, nodes).members;
  const isChosen = new Set(chosen);
  let last = members.findLast((node) => isChosen.has(node)) as NodeId;
  const served = new Map<NodeId, NodeId>();
  for (const node of members) {
    if (isChosen.has(node)) last = node;
    served.set(node, last);
  }
  return figuresOf(served, arcs(chosen));
}

/** Averages several random placements with the same number of super-peers. */
function byLot({ superPeers }: Figures, placed: (chosen: readonly NodeId[]) => Figures): Figures {
  const chance = random(1);
  const all = Array.from({ length: PLACEMENTS }, () => placed(drawn(superPeers, chance)));
  const keys = Object.keys(all[0] ?? {}) as (keyof Figures)[];
  return Object.fromEntries(keys.map((key) => [key, mean(all.map((each) => each[key]))])) as unknown as Figures;
}

const arcs = (chosen: readonly NodeId[]): number[] =>
  arcsOf(
    chosen.map((node) => ring.placeOf(node)),
    ring.placeOfKey(2 ** IDENTIFIER_BITS - 1) + ring.placeOfKey(1),
  );

function drawn(superPeers: number, chance: Random): NodeId[] {
  const left = [...nodes];
  return Array.from({ length: superPeers }, (_, i) => {
    const at = i + chance.below(left.length - i);
    [left[i], left[at]] = [left[at] as NodeId, left[i] as NodeId];
    return left[i];
  });
}

function requireRight(violations: readonly { readonly property: string }[]): void {
  const [first] = violations;
  if (first !== undefined) throw new Error(`expected the election to be right, but “${first.property}” is violated`);
}

const ringed = dht();
const pushed = tokens();
const methods: readonly ({ readonly method: string; readonly overlay: string } & Figures)[] = [
  { method: "super-peer-dht", overlay: "ring", ...ringed.figures },
  { method: "by lot", overlay: "ring", ...byLot(ringed.figures, byLotOnRing) },
  { method: "super-peer-tokens", overlay: "space", ...pushed.figures },
  { method: "by lot", overlay: "space", ...byLot(pushed.figures, byLotInSpace) },
];

if (values.json)
  console.log(JSON.stringify({ nodes: count, share, limit, methods, ring: ringed, tokens: pushed }, null, 2));
else {
  const percent = (part: number): string => `${(100 * part).toFixed(2)} %`;
  console.log(`${count} nodes; target: ${percent(share)} super-peers, each for at most ${limit} nodes`);
  printTable([
    ["method", "super-peers", "share", "distance", "95 %", "unevenness", "load", "most", `over ${limit}`],
    ...methods.map((each) => [
      `${each.method}, ${each.overlay}`,
      each.superPeers.toFixed(0),
      percent(each.share),
      each.distance.toFixed(3),
      each.distanceP95.toFixed(3),
      each.unevenness.toFixed(2),
      each.load.toFixed(0),
      each.mostLoad.toFixed(0),
      percent(each.overLimit),
    ]),
  ]);
  const { hops } = ringed;
  console.log(`
distance: from a node to its super-peer in the unit torus, whose farthest points are 0.707 apart
unevenness: of the arcs between super-peers on the ring, or of the areas nearest to each; deviation by mean
by lot: the mean of ${PLACEMENTS} placements of as many super-peers

the ring: a lookup of any identifier takes ${hops.any.toFixed(2)} hops, ½·log2 N is ${hops.formula.toFixed(2)}; of the beginning
  of its own region, just behind it, ${hops.ownRegion.toFixed(2)}; ${ringed.messages.toFixed(1)} messages a node and round
the tokens: ${pushed.tokens.before}, and ${pushed.tokens.after} once settled; ${pushed.movesPerToken.toFixed(1)} moves each, the last in round ${pushed.lastMove}, none in the
  ${pushed.rounds - pushed.lastMove} rounds after it; ${percent(pushed.servedByNearest)} of the nodes use the nearest; ${pushed.messages.toFixed(2)} messages a node and round`);
}
