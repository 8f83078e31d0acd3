/** The two elections of super-peers in the simulator, and as many nodes drawn by lot. */
import type { NodeId } from "../../src/core/protocol.ts";
import { type Random, random } from "../../src/core/random.ts";
import { type SuperPeerDht, superPeerDht } from "../../src/protocols/overlay/super-peer-dht/super-peer-dht.ts";
import { convergedRing, identifierRing } from "../../src/protocols/overlay/super-peer-dht/vocabulary.ts";
import {
  type SuperPeerTokens,
  superPeerTokens,
} from "../../src/protocols/overlay/super-peer-tokens/super-peer-tokens.ts";
import { space } from "../../src/protocols/overlay/super-peer-tokens/vocabulary.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { type Assignment, arcsOf, cellsOf, type Figures, figures, mean, nearest, together } from "./figures.ts";

export interface Wanted {
  readonly nodes: readonly NodeId[];
  readonly share: number;
  readonly limit: number;
}

export const plane = space({ dimensions: 2, positions: [] });

const IDENTIFIER_BITS = 24;
export const ring = identifierRing({ identifierBits: IDENTIFIER_BITS, reservedBits: 0, identifiers: [] });
const DELAY_MS = 10;
const ROUND_MS = 500;
const PLACEMENTS = 20;

export interface Elected {
  readonly served: Assignment;
  readonly figures: Figures;
}

export interface DhtRun extends Elected {
  /** Hops of a lookup in the mean: of any identifier, and of the beginning of one's own region. */
  readonly hops: { readonly any: number; readonly ownRegion: number; readonly formula: number };
  /** A node and round, once all know their super-peers. */
  readonly messages: number;
}

/** A ring that has converged: three rounds of all, then lookups. */
export function dht({ nodes, share, limit }: Wanted): DhtRun {
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
    served,
    figures: figures(plane, served, arcs([...new Set(served.values())]), limit),
    hops: { any, ownRegion, formula: Math.log2(nodes.length) / 2 },
    messages: (sim.messages.total - before) / nodes.length / rounds,
  };
}

export interface TokenRun extends Elected {
  /** Rounds until the last token had moved for the last time, and for how many it was watched. */
  readonly lastMove: number;
  readonly rounds: number;
  readonly movesPerToken: number;
  readonly tokens: { readonly before: number; readonly after: number };
  /** How many of all nodes use the nearest super-peer. */
  readonly servedByNearest: number;
  /** A node and round. */
  readonly messages: number;
}

/** So many rounds without a move, and they are held for settled. */
const CALM_ROUNDS = 30;
const MAX_ROUNDS = 400;

export function tokens({ nodes, share, limit }: Wanted): TokenRun {
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
  const atNearest = nodes.filter((node) => served.get(node) === nearest(plane, plane.pointOf(node), superPeers));
  return {
    served,
    figures: figures(plane, served, cellsOf(plane, superPeers), limit),
    servedByNearest: atNearest.length / nodes.length,
    lastMove,
    rounds,
    movesPerToken: moves / before,
    tokens: { before, after: held() },
    messages: sim.messages.total / nodes.length / rounds,
  };
}

/** As many by lot, each node served by the nearest of them. */
export function byLotInSpace({ nodes, limit }: Wanted, count: number): Elected {
  const placed = placements(nodes, count).map((chosen) => {
    const served = new Map(nodes.map((node) => [node, nearest(plane, plane.pointOf(node), chosen)]));
    return { served, figures: figures(plane, served, cellsOf(plane, chosen), limit) };
  });
  return { ...(placed[0] as Elected), figures: together(placed.map((each) => each.figures)) };
}

/** As many by lot, each node served by the one before it on the ring. */
export function byLotOnRing({ nodes, limit }: Wanted, count: number): Elected {
  const placed = placements(nodes, count).map((chosen) => {
    const members = convergedRing(ring, nodes).members;
    const isChosen = new Set(chosen);
    let last = members.findLast((node) => isChosen.has(node)) as NodeId;
    const served = new Map<NodeId, NodeId>();
    for (const node of members) {
      if (isChosen.has(node)) last = node;
      served.set(node, last);
    }
    return { served, figures: figures(plane, served, arcs(chosen), limit) };
  });
  return { ...(placed[0] as Elected), figures: together(placed.map((each) => each.figures)) };
}

const arcs = (chosen: readonly NodeId[]): number[] =>
  arcsOf(
    chosen.map((node) => ring.placeOf(node)),
    ring.placeOfKey(2 ** IDENTIFIER_BITS - 1) + ring.placeOfKey(1),
  );

function placements(nodes: readonly NodeId[], count: number): NodeId[][] {
  const chance = random(1);
  return Array.from({ length: PLACEMENTS }, () => drawn(nodes, count, chance));
}

function drawn(nodes: readonly NodeId[], count: number, chance: Random): NodeId[] {
  const left = [...nodes];
  return Array.from({ length: count }, (_, i) => {
    const at = i + chance.below(left.length - i);
    [left[i], left[at]] = [left[at] as NodeId, left[i] as NodeId];
    return left[i];
  });
}

function requireRight(violations: readonly { readonly property: string }[]): void {
  const [first] = violations;
  if (first !== undefined) throw new Error(`expected the election to be right, but “${first.property}” is violated`);
}
