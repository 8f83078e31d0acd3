/**
 * A recording that is looked into at many of its moments. It is replayed once; how everything stood is kept every so often,
 * and any moment is replayed from the last that was kept before it.
 */
import type { NodeId, Protocol, Vocabulary } from "../core/protocol.ts";
import type { TraceEntry } from "./entry.ts";
import { type Doubt, Replaying, type ReplayOptions, type SavedReplay } from "./replay.ts";
import type { Snapshot } from "./snapshot.ts";

export interface Moment<V extends Vocabulary> {
  readonly snapshot: Snapshot<V>;
  readonly doubts: readonly Doubt[];
  readonly lost: readonly NodeId[];
}

/** So many are kept at most: each holds all states. */
const MAX_KEPT = 200;
/** Entries from one that is kept to the next: replaying fewer takes no time that anybody notices. */
const LEAST_APART = 200;

export class ReplayMoments<V extends Vocabulary> {
  readonly #entries: readonly TraceEntry<V>[];
  readonly #walker: Replaying<V>;
  readonly #apart: number;
  readonly #kept: SavedReplay<V>[];
  /** How many entries the walker has behind it. */
  #place = 0;
  /** Up to here it has been compared with what was recorded, once. */
  #furthest = 0;
  #walked = 0;

  /** Its properties are not looked at. */
  constructor(
    protocol: Protocol<V>,
    nodes: readonly NodeId[],
    entries: readonly TraceEntry<V>[],
    options: Pick<ReplayOptions, "hasRealSignatures" | "states"> = {},
  ) {
    this.#entries = entries;
    this.#walker = new Replaying({ ...protocol, properties: [] }, nodes, entries, options);
    this.#apart = Math.max(LEAST_APART, Math.ceil(entries.length / MAX_KEPT));
    this.#kept = [this.#walker.save()];
  }

  /** How many entries have been replayed so far. */
  get walked(): number {
    return this.#walked;
  }

  /** How many at most are replayed for a moment, once the last has been seen. */
  get apart(): number {
    return this.#apart;
  }

  /**
   * Its states are no copies: they change when another moment is asked for.
   * @param count of entries that are past by then
   */
  after(count: number): Moment<V> {
    this.#goTo(Math.min(count, this.#entries.length));
    const { doubts, lost } = this.#walker;
    const at = this.#entries[this.#place - 1]?.at ?? 0;
    return { snapshot: this.#walker.standing(at), doubts: [...doubts], lost };
  }

  /** Goes to the end, and tells now and then how far it has come. */
  keepAll(onProgress: (entries: number) => void): void {
    for (let place = 0; place < this.#entries.length; place += this.#apart) {
      this.#goTo(place);
      onProgress(place);
    }
    this.#goTo(this.#entries.length);
  }

  #goTo(place: number): void {
    const last = Math.min(Math.floor(place / this.#apart), this.#kept.length - 1);
    if (place < this.#place || last * this.#apart > this.#place) {
      this.#walker.restore(this.#kept[last] as SavedReplay<V>);
      this.#place = last * this.#apart;
    }
    while (this.#place < place) {
      this.#walker.walk(this.#place, this.#place < this.#furthest);
      this.#place += 1;
      this.#walked += 1;
      this.#furthest = Math.max(this.#furthest, this.#place);
      if (this.#place === this.#kept.length * this.#apart) this.#kept.push(this.#walker.save());
    }
  }
}
