/** What one node's process has held back in the time that is kept. */
import type { NodeId } from "../../../src/core/protocol.ts";
import { HoldBackQueue, type Track } from "../../../src/trace/diagram/diagram.ts";

/** More than fit in a row of the diagram are counted. */
const ROWS = 3;
/** Under load it changes with every message. */
const MAX_CHANGES = 1_500;

interface Change {
  readonly at: number;
  /** Oldest first. */
  readonly held: readonly string[];
}

export class HoldBack {
  readonly #node: NodeId;
  #changes: Change[] = [];
  /** What the changes come to; null when there are new ones. */
  #tracks: readonly Track[] | null = null;

  constructor(node: NodeId) {
    this.#node = node;
  }

  /** What it holds back now, oldest first; null where its protocol does not hold back. */
  get now(): readonly string[] | null {
    return this.#changes.at(-1)?.held ?? null;
  }

  become(at: number, held: readonly string[]): void {
    this.#changes.push({ at, held });
    this.#tracks = null;
    if (this.#changes.length > 2 * MAX_CHANGES) this.#changes = this.#changes.slice(-MAX_CHANGES);
  }

  /** A process that ends takes what it held with it. */
  lose(at: number): void {
    if (this.#changes.length > 0) this.become(at, []);
  }

  /** What it held before anything is known, from how things stand now. */
  supposeBefore(held: readonly string[] | undefined): void {
    if (this.#changes.length === 0 && held !== undefined) this.become(-Infinity, held);
  }

  /** In milliseconds. */
  tracks(): readonly Track[] {
    this.#tracks ??= this.#tracksAnew();
    return this.#tracks;
  }

  #tracksAnew(): Track[] {
    const queue = new HoldBackQueue(this.#node, ROWS);
    for (const { at, held } of this.#changes) queue.become(held, at === -Infinity ? null : at);
    return queue.end();
  }

  /** Forgets what was before `at`, except how things stood then. */
  forget(at: number): void {
    const last = this.#changes.findLastIndex((change) => change.at <= at);
    if (last <= 0) return;
    const [standing, ...later] = this.#changes.slice(last) as [Change, ...Change[]];
    this.#changes = [{ ...standing, at: -Infinity }, ...later];
    this.#tracks = null;
  }
}
