/** The vocabulary of the tokens: the space, state and messages. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { hash } from "../../../core/plain.ts";
import type { Context, NodeId, Property, World } from "../../../core/protocol.ts";
import { boolean, list, natural, real, type Shape, struct } from "../../../core/shape.ts";
import { count, option, type ValuesOf } from "../../options.ts";

// The m-dimensional space of the nodes' positions: the unit torus of Ratnasamy et al., "CAN", SIGCOMM 2001.

export type Point = readonly number[];

export interface Space {
  readonly dimensions: number;
  pointOf(node: NodeId): Point;
  distance(from: Point, to: Point): number;
  /** The shortest path, as a vector. */
  way(from: Point, to: Point): number[];
  /** The point reached from `from` by the vector `by`. */
  moved(from: Point, by: Point): number[];
}

export const spaceOptions = {
  dimensions: count(2, "the dimensions of the space"),
  positions: option(
    list(list(real, 16), 1_000_000) as Shape<readonly Point[]>,
    [],
    "the coordinates, indexed by node id, in [0, 1); empty: hashes of node ids",
  ),
};

type SpaceOptions = ValuesOf<typeof spaceOptions>;

const HASHES = 2 ** 53;

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

/** The signed distance on a circle of length 1, between −½ and ½. */
function span(from: number, to: number): number {
  const way = to - from;
  return way > 0.5 ? way - 1 : way < -0.5 ? way + 1 : way;
}

const wrapped = (x: number): number => x - Math.floor(x);

// Tokens repel each other with a force of 1 at distance 0 that falls to 0 at `reach`.

/** The net force on a token at `self`, as a vector. */
export function netForce(space: Space, self: NodeId, others: readonly Sighting[], reach: number): number[] {
  const own = space.pointOf(self);
  const net = own.map(() => 0);
  for (const { holder } of others) {
    const away = space.way(space.pointOf(holder), own);
    const distance = length(away);
    if (distance >= reach) continue;
    const strength = 1 - distance / reach;
    // Two nodes at the same point: the higher id moves one way, the lower the other.
    if (distance === 0) net[0] = (net[0] ?? 0) + (self > holder ? strength : -strength);
    else for (const [axis, x] of away.entries()) net[axis] = (net[axis] ?? 0) + (strength * x) / distance;
  }
  return net;
}

export const length = (vector: readonly number[]): number => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));

/** A token in one of its lives. Of two with the same id, the later one counts, by epoch, then moves, then the holder's id. */
export interface Token {
  id: number;
  /** How many times it was lost and recreated. */
  epoch: number;
  /** How many times it has moved, or tried to, in this epoch. */
  moves: number;
}

/** A node's knowledge of a token. */
export interface Sighting extends Token {
  holder: NodeId;
  /** Rounds since the holder's report. */
  age: number;
  /** Whether its holder is a super-peer. */
  isSettled: boolean;
}

/** A token whose holder has named this node its heir. */
export interface Legacy extends Token {
  holder: NodeId;
  /** Rounds since the holder's report. */
  silence: number;
}

/** Vocabulary of the super-peer election by repelling tokens. */
export type SuperPeerTokens = {
  state: {
    neighbours: NodeId[];
    token: Token | null;
    /** The rounds that the token has been here, up to the number that a super-peer needs. */
    held: number;
    /** The rounds left for a move to end; 0 if none is in progress. */
    moving: number;
    heir: NodeId | null;
    legacies: Legacy[];
    /** Tokens at other nodes, the nearest first. */
    known: Sighting[];
    /** The index of the next neighbor to gossip with. */
    turn: number;
    /** The neighbor that it gossiped with last, until that one answers. */
    partner: NodeId | null;
    /** Neighbors that did not answer the last time. */
    silent: NodeId[];
    superPeer: NodeId | null;
  };
  message: /** The sender's sightings. The receiver answers with its own. */
    | { type: "gossip"; tokens: Sighting[] }
    | { type: "answer"; tokens: Sighting[] }
    /** Forwarded from node to node, each closer to the goal. The last one takes the token. */
    | { type: "move"; token: Token; goal: number[]; holder: NodeId }
    | { type: "taken"; token: Token }
    | { type: "refused"; token: Token }
    /** If the sender falls silent, the receiver recreates this token; with `isOver`, no longer. */
    | { type: "heir"; token: Token; isOver: boolean }
    /** The sender, the heir of this token, has received nothing from the holder, and asks whether it still holds the token. */
    | { type: "check"; token: Token };
  timer: "round";
  /** Starts a round now. */
  command: { type: "call" };
  /** The node's super-peer has changed. */
  event: { type: "elected"; leader: NodeId };
  /** The node has run before: its initial token is elsewhere by now, or was lost with it. */
  record: { type: "begun" };
};

export type State = SuperPeerTokens["state"];
export type Ctx = Context<SuperPeerTokens>;

/** The maximum number of tokens that a node knows: the nearest ones. */
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

/** Whether the first is the later life of the same token. If two nodes hold equal lives, the higher id keeps the token. */
export function isLater(a: Token & { holder: NodeId }, b: Token & { holder: NodeId }): boolean {
  return a.epoch !== b.epoch ? a.epoch > b.epoch : a.moves !== b.moves ? a.moves > b.moves : a.holder > b.holder;
}

type Nodes = World<State>;

/** The holders of each token. A holder whose move is in progress does not count: it only keeps a token that may come back. */
function holders({ alive, state }: Nodes): Map<number, NodeId[]> {
  const found = new Map<number, NodeId[]>();
  for (const node of alive) {
    const { token, moving } = state(node);
    if (token === null || moving > 0) continue;
    found.set(token.id, [...(found.get(token.id) ?? []), node]);
  }
  return found;
}

/** @param tokens the initial number of tokens */
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
      claim: "eventually there are as many tokens as initially, or as alive nodes if these are fewer",
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
