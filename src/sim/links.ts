/** Links between nodes: what they do to a message, and which are cut. */
import type { Random } from "../core/random.ts";
import { type LinkModel, requireLinkModel } from "../trace/link-model.ts";
import { type Sampler, sampler } from "./delay.ts";

/** What is true of a link of which nothing else is said. */
export const plainLink: Omit<LinkModel, "delay"> = {
  lossRate: 0,
  duplicateRate: 0,
  order: "fifo",
  bytesPerMs: Number.POSITIVE_INFINITY,
};

/** One seeded stream per purpose: what one of them draws moves nothing in the others. */
export interface LinkChance {
  readonly delays: Random;
  readonly losses: Random;
  readonly duplicates: Random;
}

/** A link model that is ready to draw from. Links of the same model share it. */
export interface Carrier {
  readonly model: LinkModel;
  /** Whether a message may have to wait for those before it. Not where all of them travel equally long anyway. */
  readonly mayQueue: boolean;
  readonly travel: Sampler;
  /** How long the second arrival of a message travels. */
  readonly travelAgain: Sampler;
  isLost(): boolean;
  isDuplicated(): boolean;
  /** How long it takes to put the message on the link. */
  sendingMs(message: unknown): number;
}

/** @throws UsageError for a model that is none, naming it `name`. */
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

/** What is certain draws nothing. */
function draws(rate: number, source: Random): () => boolean {
  if (rate === 0 || rate === 1) return () => rate === 1;
  return () => source.between(0, 1) < rate;
}

/** One direction between two nodes, and what is on it. Where no message waits for another, many pairs share one. */
export class Link {
  isCut = false;
  /** Until when it is busy sending. */
  #freeAt = 0;
  #lastArrival = 0;

  constructor(public carrier: Carrier) {}

  /** When `message` arrives that leaves at `leaves` and travels so long. */
  arrival(message: unknown, leaves: number, travelMs: number): number {
    if (!this.carrier.mayQueue && leaves + travelMs >= this.#lastArrival) return leaves + travelMs;
    this.#freeAt = Math.max(leaves, this.#freeAt) + this.carrier.sendingMs(message);
    const at = this.#freeAt + travelMs;
    if (this.carrier.model.order === "none") return at;
    this.#lastArrival = Math.max(at, this.#lastArrival);
    return this.#lastArrival;
  }

  /** Something that is on its way already will arrive at `at`. */
  expect(at: number): void {
    this.#lastArrival = Math.max(at, this.#lastArrival);
  }
}

/** The links that lead away from one node, by the places of the receivers. Most nodes speak to the same one again and again. */
export class Outgoing {
  #lastPlace = -1;
  #last: Link | null = null;
  /** Made for the second link. */
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
