/** The vocabulary of the tokens (space, state and messages), and functions on the space. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { hash } from "../../../core/plain.ts";
import type { Context, NodeId, Property, World } from "../../../core/protocol.ts";
import { boolean, list, natural, real, type Shape, struct } from "../../../core/shape.ts";
import { count, option, type ValuesOf } from "../../options.ts";

// The m-dimensional space for nodes' positions, which is the unit torus from Ratnasamy et al., "CAN", SIGCOMM 2001.

/** Coordinates, each from 0 (inclusive) to 1 (exclusive). */
export type Point = readonly number[];

/** The space that contains nodes' and tokens' positions. */
export interface Space {
  readonly dimensions: number;
  pointOf(node: NodeId): Point;
  distance(from: Point, to: Point): number;
  /** Returns the shortest path between two points, as a vector. */
  way(from: Point, to: Point): number[];
  /** Returns the point at `from` plus the vector `by`. */
  moved(from: Point, by: Point): number[];
}

/** The options that determine positions. */
export const spaceOptions = {
  dimensions: count(2, "the number of dimensions of the space"),
  positions: option(
    list(list(real, 16), 1_000_000) as Shape<readonly Point[]>,
    [],
    "the coordinates, in [0, 1), indexed by node id; if empty, hashes of the node ids",
  ),
};

type SpaceOptions = ValuesOf<typeof spaceOptions>;

const HASHES = 2 ** 53;

/** Creates the space. @throws UsageError if a position lies outside the space */
export function space({ dimensions, positions }: SpaceOptions): Space {
  const stray = positions.find((point) => point.length !== dimensions || point.some((x) => !(x >= 0 && x < 1)));
  if (stray !== undefined)
    throw new UsageError(
      "bad-option",
      unexpected("super-peer-tokens.positions", `${dimensions} numbers in [0, 1)`, stray),
    );
  const known = new Map<NodeId, Point>();

  function pointOf(node: NodeId): Point {
    let point = known.get(node);
    if (point === undefined) {
      point =
        positions.length > 0
          ? given(node)
          : Array.from({ length: dimensions }, (_, axis) => hash([node, axis]) / HASHES);
      known.set(node, point);
    }
    return point;
  }

  function given(node: NodeId): Point {
    const point = positions[node];
    if (point !== undefined) return point;
    throw new UsageError(
      "bad-option",
      unexpected("super-peer-tokens.positions", `an entry for node ${node} as well`, positions),
    );
  }

  function distance(from: Point, to: Point): number {
    let sum = 0;
    for (let axis = 0; axis < dimensions; axis++) {
      const way = span(from[axis] as number, to[axis] as number);
      sum += way * way;
    }
    return Math.sqrt(sum);
  }

  return {
    dimensions,
    pointOf,
    distance,
    way: (from, to) => from.map((x, axis) => span(x, to[axis] as number)),
    moved: (from, by) => from.map((x, axis) => wrapped(x + (by[axis] as number))),
  };
}

/** Returns the signed distance on a circle of length 1, between −½ and ½. */
function span(from: number, to: number): number {
  const way = to - from;
  return way > 0.5 ? way - 1 : way < -0.5 ? way + 1 : way;
}

const wrapped = (x: number): number => x - Math.floor(x);

// Tokens repel each other with a force that is 1 at distance 0 and falls to 0 at `reach`.

/** Returns the net force on a token at `self`, as a vector. */
export function netForce(space: Space, self: NodeId, others: readonly Sighting[], reach: number): number[] {
  const own = space.pointOf(self);
  const net = own.map(() => 0);
  for (const { holder } of others) {
    const away = space.way(space.pointOf(holder), own);
    const distance = length(away);
    if (distance >= reach) continue;
    const strength = 1 - distance / reach;
    // If two nodes are at the same point, the higher id moves one way and the lower id the other.
    if (distance === 0) net[0] = (net[0] ?? 0) + (self > holder ? strength : -strength);
    else for (const [axis, x] of away.entries()) net[axis] = (net[axis] ?? 0) + (strength * x) / distance;
  }
  return net;
}

/** Returns the vector's Euclidean length. */
export const length = (vector: readonly number[]): number => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));

/**
 * One incarnation of a token. If there are two with the same id, the later one counts, as determined by the epoch, then
 * the moves, then the holder's id.
 */
export interface Token {
  id: number;
  /** How many times the token has been lost and recreated. */
  epoch: number;
  /** How many times the token has moved, or tried to move, in this epoch. */
  moves: number;
}

/** A node's knowledge of a token. */
export interface Sighting extends Token {
  holder: NodeId;
  /** The number of rounds since the holder's report. */
  age: number;
  /** Whether the token's holder is a super-peer. */
  isSettled: boolean;
}

/** A token for which this node is the heir: the node that recreates the token if it is lost. */
export interface Legacy extends Token {
  holder: NodeId;
  /** The number of rounds since the holder's report. */
  silence: number;
}

/** Vocabulary of the super-peer election by repelling tokens. */
export type SuperPeerTokens = {
  state: {
    neighbours: NodeId[];
    token: Token | null;
    /** The number of rounds that this node has held the token, up to the number that a super-peer needs. */
    held: number;
    /** The number of rounds left for the current move to end, or 0 if none is in progress. */
    moving: number;
    heir: NodeId | null;
    legacies: Legacy[];
    /** The known tokens at other nodes, nearest first. */
    known: Sighting[];
    /** The index of the next neighbor to gossip with. */
    turn: number;
    /** The neighbor that this node last gossiped with, until it answers. */
    partner: NodeId | null;
    /** Neighbors that did not answer last time. */
    silent: NodeId[];
    superPeer: NodeId | null;
  };
  message: /** The sender's sightings. The receiver answers with its own. */
    | { type: "gossip"; tokens: Sighting[] }
    | { type: "answer"; tokens: Sighting[] }
    /**
     * Moves a token. The message is forwarded from node to node, each closer to the goal than the previous one. The
     * last node takes the token.
     */
    | { type: "move"; token: Token; goal: number[]; holder: NodeId }
    | { type: "taken"; token: Token }
    | { type: "refused"; token: Token }
    /**
     * Makes the receiver the token's heir, which recreates the token if the sender falls silent. If `isOver` is set,
     * the receiver is no longer the heir.
     */
    | { type: "heir"; token: Token; isOver: boolean }
    /**
     * Asks whether the receiver still holds the token, because the sender, the token's heir, has not received anything
     * from it recently.
     */
    | { type: "check"; token: Token };
  timer: "round";
  /** Starts a round now. */
  command: { type: "call" };
  /** The node's super-peer has changed. */
  event: { type: "elected"; leader: NodeId };
  /** The node has run before, so its initial token has moved elsewhere or was lost when the node crashed. */
  record: { type: "begun" };
};

export type State = SuperPeerTokens["state"];
export type Ctx = Context<SuperPeerTokens>;

/** The maximum number of tokens that a node remembers. It keeps the nearest ones. */
export const MAX_KNOWN = 12;
const MAX_DIMENSIONS = 16;

const token: Shape<Token> = struct<Token>({ id: natural, epoch: natural, moves: natural });
const sightings = list(
  struct<Sighting>({ id: natural, epoch: natural, moves: natural, holder: natural, age: natural, isSettled: boolean }),
  MAX_KNOWN + 1,
);

export const shapes = {
  message: {
    gossip: { tokens: sightings },
    answer: { tokens: sightings },
    move: { token, goal: list(real, MAX_DIMENSIONS), holder: natural },
    taken: { token },
    refused: { token },
    heir: { token, isOver: boolean },
    check: { token },
  },
  command: { call: {} },
  record: { begun: {} },
} as const;

/**
 * Whether `a` is a later incarnation of the token than `b`. If two nodes hold the same incarnation, the node with the
 * higher id keeps the token.
 */
export function isLater(a: Token & { holder: NodeId }, b: Token & { holder: NodeId }): boolean {
  return a.epoch !== b.epoch ? a.epoch > b.epoch : a.moves !== b.moves ? a.moves > b.moves : a.holder > b.holder;
}

type Nodes = World<State>;

/**
 * Returns the holders of each token. A holder with a move in progress does not count, because it only keeps a token
 * that may come back.
 */
function holders({ alive, state }: Nodes): Map<number, NodeId[]> {
  const found = new Map<number, NodeId[]>();
  for (const node of alive) {
    const { token, moving } = state(node);
    if (token === null || moving > 0) continue;
    found.set(token.id, [...(found.get(token.id) ?? []), node]);
  }
  return found;
}

/** Returns the election's properties. @param tokens the initial number of tokens */
export function superPeerProperties(
  isSettled: (state: State) => boolean,
  tokens: () => number,
): readonly Property<SuperPeerTokens>[] {
  return [
    {
      name: "one holder",
      claim: "no token is held by two nodes",
      when: "always",
      holds: (world) => [...holders(world).values()].every((nodes) => nodes.length === 1),
    },
    {
      name: "none lost",
      claim: "eventually there are as many tokens as initially, or as many as live nodes if there are fewer of those",
      when: "eventually",
      holds: (world) => holders(world).size === Math.min(tokens(), world.alive.length),
    },
    {
      name: "settled",
      claim: "eventually each token is held by one node, which is a super-peer",
      when: "eventually",
      holds(world) {
        const held = [...holders(world)];
        const isEach = held.every(([, nodes]) => nodes.length === 1 && isSettled(world.state(nodes[0] as NodeId)));
        return isEach && world.alive.every((node) => world.state(node).moving === 0);
      },
    },
    {
      name: "served",
      claim: "eventually each node uses a super-peer",
      when: "eventually",
      holds: ({ alive, state }) =>
        alive.every((node) => {
          const { superPeer } = state(node);
          return superPeer !== null && alive.includes(superPeer) && isSettled(state(superPeer));
        }),
    },
  ];
}
