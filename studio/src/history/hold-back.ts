/** The messages that one node's process has held back during the retention time. */
import type { NodeId } from "../../../src/core/protocol.ts";
import { HoldBackQueue, type Track } from "../../../src/trace/diagram/diagram.ts";

/** The number of rows in the diagram. Any further messages are shown as a count. */
const ROWS = 3;
/** The maximum number of changes. Under load, the queue changes with every message. */
const MAX_CHANGES = 1_500;

interface Change {
  readonly at: number;
  readonly held: readonly string[];
}

export class HoldBack {
  readonly #node: NodeId;
  #changes: Change[] = [];
  /** The cached tracks. Null after a new change. */
  #tracks: readonly Track[] | null = null;

  constructor(node: NodeId) {
    this.#node = node;
  }

  /** The messages currently held back, oldest first. Null if the protocol has no hold-back queue. */
  get now(): readonly string[] | null {
    return this.#changes.at(-1)?.held ?? null;
  }

  become(at: number, held: readonly string[]): void {
    this.#changes.push({ at, held });
    this.#tracks = null;
    if (this.#changes.length > 2 * MAX_CHANGES) this.#changes = this.#changes.slice(-MAX_CHANGES);
  }

  /** Empties the queue when the process ends. */
  lose(at: number): void {
    if (this.#changes.length > 0) this.become(at, []);
  }

  /** If no change is known, uses the current queue as the state before the first change. */
  supposeBefore(held: readonly string[] | undefined): void {
    if (this.#changes.length === 0 && held !== undefined) this.become(-Infinity, held);
  }

  /** Returns the tracks. Times are in milliseconds. */
  tracks(): readonly Track[] {
    this.#tracks ??= this.#tracksAnew();
    return this.#tracks;
  }

  #tracksAnew(): Track[] {
    const queue = new HoldBackQueue(this.#node, ROWS);
    for (const { at, held } of this.#changes) queue.become(held, at === -Infinity ? null : at);
    return queue.end();
  }

  /** Discards changes before `at`, but keeps the state at that time. */
  forget(at: number): void {
    const last = this.#changes.findLastIndex((change) => change.at <= at);
    if (last <= 0) return;
    const [standing, ...later] = this.#changes.slice(last) as [Change, ...Change[]];
    this.#changes = [{ ...standing, at: -Infinity }, ...later];
    this.#tracks = null;
  }
}
