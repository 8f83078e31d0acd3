/** Links between nodes, their effects on messages, and cuts. */

import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";
import { type LinkModel, requireLinkModel } from "../trace/link-model.ts";
import { type Sampler, sampler } from "./delay.ts";

/** The default link model. */
export const plainLink: Omit<LinkModel, "delay"> = {
  lossRate: 0,
  duplicateRate: 0,
  order: "fifo",
  bytesPerMs: Number.POSITIVE_INFINITY,
};

/** Random sources, one seeded stream per purpose, so that draws for one purpose do not affect the others. */
export interface LinkChance {
  readonly delays: Random;
  readonly losses: Random;
  readonly duplicates: Random;
}

/** A link model with its random sources. Links with the same model share one carrier. */
export interface Carrier {
  readonly model: LinkModel;
  /** Whether a message may have to wait for earlier ones. False if all messages have the same delay anyway. */
  readonly mayQueue: boolean;
  readonly travel: Sampler;
  /** The delay of the second copy of a duplicated message. */
  readonly travelAgain: Sampler;
  isLost(): boolean;
  isDuplicated(): boolean;
  /** Returns how long it takes the sender to put the message on the link. */
  sendingMs(message: unknown): number;
}

/**
 * Creates a carrier.
 * @param name the name of the model in error messages.
 * @throws UsageError if the model is invalid
 */
export function carrier(model: LinkModel, chance: LinkChance, name: string): Carrier {
  requireLinkModel(model, name);
  const { delay, lossRate, duplicateRate, bytesPerMs } = model;
  return {
    model,
    mayQueue: bytesPerMs !== Number.POSITIVE_INFINITY || (model.order === "fifo" && typeof delay !== "number"),
    travel: sampler(delay, chance.delays, `${name}.delay`),
    travelAgain: sampler(delay, chance.duplicates, `${name}.delay`),
    isLost: draws(lossRate, chance.losses),
    isDuplicated: draws(duplicateRate, chance.duplicates),
    sendingMs:
      bytesPerMs === Number.POSITIVE_INFINITY ? () => 0 : (message) => JSON.stringify(message).length / bytesPerMs,
  };
}

/**
 * Returns a function that draws whether an event with the given rate occurs. For a rate of 0 or 1, it draws no random
 * numbers.
 */
function draws(rate: number, source: Random): () => boolean {
  if (rate === 0 || rate === 1) return () => rate === 1;
  return () => source.between(0, 1) < rate;
}

/**
 * One direction of a link between two nodes, with the messages on it. If messages never wait for each other, many pairs
 * of nodes share one object.
 */
export class Link {
  isCut = false;
  /** The time at which the link finishes sending. */
  #freeAt = 0;
  #lastArrival = 0;

  constructor(public carrier: Carrier) {}

  /** Returns the arrival time of `message`, given its departure time and its travel time. */
  arrival(message: unknown, leaves: number, travelMs: number): number {
    if (!this.carrier.mayQueue && leaves + travelMs >= this.#lastArrival) return leaves + travelMs;
    this.#freeAt = Math.max(leaves, this.#freeAt) + this.carrier.sendingMs(message);
    const at = this.#freeAt + travelMs;
    if (this.carrier.model.order === "none") return at;
    this.#lastArrival = Math.max(at, this.#lastArrival);
    return this.#lastArrival;
  }

  /** Records that a message already in flight will arrive at `at`. */
  expect(at: number): void {
    this.#lastArrival = Math.max(at, this.#lastArrival);
  }
}

/**
 * One node's outgoing links, keyed by the receivers' indexes. Most nodes send to the same receiver repeatedly, so the
 * most recently used link is cached.
 */
export class Outgoing {
  #lastPlace = -1;
  #last: Link | null = null;
  /** All links. The map is created when the second link is added. */
  #all: Map<number, Link> | null = null;

  get(place: number): Link | null {
    if (place === this.#lastPlace) return this.#last;
    const known = this.#all?.get(place) ?? null;
    if (known !== null) this.#remember(place, known);
    return known;
  }

  add(place: number, link: Link): void {
    if (this.#last !== null) {
      this.#all ??= new Map([[this.#lastPlace, this.#last]]);
      this.#all.set(place, link);
    }
    this.#remember(place, link);
  }

  #remember(place: number, link: Link): void {
    this.#lastPlace = place;
    this.#last = link;
  }
}

/** A partition that does not simply divide nodes into groups. */
export type PartitionShape =
  /** Messages from `from` to `to` are lost. The other direction works. */
  | { readonly shape: "one-way"; readonly from: readonly NodeId[]; readonly to: readonly NodeId[] }
  /**
   * The nodes form two halves, one with lower and one with higher ids, that are connected only by `bridge`. Default:
   * the node in the middle.
   */
  | { readonly shape: "bridge"; readonly bridge?: NodeId }
  /**
   * The nodes form a ring by id, and each node can reach its neighbors on both sides. Each node can reach a majority,
   * but a different one. Requires at least 4 nodes.
   */
  | { readonly shape: "majority-ring" };

/**
 * A function that returns whether messages between two nodes are lost. Nodes are identified by their indexes among all
 * ids in ascending order.
 */
export type Separation = (from: number, to: number) => boolean;

/**
 * Separates groups: no message passes between them. Nodes that are not in any group form a group of their own.
 * @throws UsageError if a node is in two groups
 */
export function intoGroups(
  count: number,
  groups: readonly (readonly NodeId[])[],
  placeOf: (node: NodeId) => number,
): Separation {
  const groupOf = new Int32Array(count).fill(-1);
  for (const [index, group] of groups.entries()) {
    for (const node of group) {
      const place = placeOf(node);
      if (groupOf[place] !== -1)
        throw new UsageError("bad-partition", unexpected("the groups", "without a node in common", groups));
      groupOf[place] = index;
    }
  }
  return (from, to) => groupOf[from] !== groupOf[to];
}

/** Separates nodes as defined by the shape. @throws UsageError if these nodes cannot form the shape */
export function intoShape(count: number, shape: PartitionShape, placeOf: (node: NodeId) => number): Separation {
  switch (shape.shape) {
    case "one-way": {
      const from = new Set(shape.from.map(placeOf));
      const to = new Set(shape.to.map(placeOf));
      return (sender, receiver) => from.has(sender) && to.has(receiver);
    }
    case "bridge": {
      const bridge = shape.bridge === undefined ? count >> 1 : placeOf(shape.bridge);
      // The bridge is in neither half, so the sizes of the halves differ by at most one.
      const isLower = (place: number): boolean => (place < bridge ? place : place - 1) < count >> 1;
      return (from, to) => from !== bridge && to !== bridge && isLower(from) !== isLower(to);
    }
    case "majority-ring": {
      if (count < 4)
        throw new UsageError("bad-partition", unexpected("the nodes of a majority-ring", "at least 4", count));
      const reach = Math.ceil((count >> 1) / 2);
      return (from, to) => Math.min((from - to + count) % count, (to - from + count) % count) > reach;
    }
    default:
      throw new UsageError(
        "bad-partition",
        unexpected("the partition's shape", "one-way, bridge or majority-ring", (shape as { shape: unknown }).shape),
      );
  }
}
