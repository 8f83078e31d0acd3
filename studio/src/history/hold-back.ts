/** The messages that one node's process held back during the retention time. */
import type { NodeId } from "../../../src/core/protocol.ts";
import { HoldBackQueue, type Track } from "../../../src/trace/diagram/diagram.ts";

/** Messages beyond this many rows of the diagram are shown as a count. */
const ROWS = 3;
/** Under load, the queue changes with every message. */
const MAX_CHANGES = 1_500;

interface Change {
  readonly at: number;
  /** Oldest first. */
  readonly held: readonly string[];
}

export class HoldBack {
  readonly #node: NodeId;
  #changes: Change[] = [];
  /** Computed from the changes; null after a new change. */
  #tracks: readonly Track[] | null = null;

  constructor(node: NodeId) {
    this.#node = node;
  }

  /** The messages held back now, oldest first; null if the protocol has no hold-back queue. */
  get now(): readonly string[] | null {
    return this.#changes.at(-1)?.held ?? null;
  }

  become(at: number, held: readonly string[]): void {
    this.#changes.push({ at, held });
    this.#tracks = null;
    if (this.#changes.length > 2 * MAX_CHANGES) this.#changes = this.#changes.slice(-MAX_CHANGES);
  }

  /** A process loses its queue when it ends. */
  lose(at: number): void {
    if (this.#changes.length > 0) this.become(at, []);
  }

  /** Fills in the queue before the first change from the current one. */
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

  /** Forgets changes before `at`, except the state at that time. */
  forget(at: number): void {
    const last = this.#changes.findLastIndex((change) => change.at <= at);
    if (last <= 0) return;
    const [standing, ...later] = this.#changes.slice(last) as [Change, ...Change[]];
    this.#changes = [{ ...standing, at: -Infinity }, ...later];
    this.#tracks = null;
  }
}
