/** What is still to happen, as the queue knows it: by a slot. Slots are used again, so that a long run leaves no garbage. */

import { UsageError } from "../core/errors.ts";
import type { CommandOf, MessageOf, NodeId, TimerOf, Vocabulary } from "../core/protocol.ts";
import type { MessageId } from "../trace/entry.ts";
import type { SimulatedNode } from "./simulated-node.ts";

export interface Pending<V extends Vocabulary> {
  /** `turn`: the node is done with its last stimulus, and takes up what waits. */
  kind: "arrival" | "timeout" | "command" | "turn";
  node: SimulatedNode<V>;
  /** Of a time-out the arming, otherwise the incarnation that it is meant for. */
  number: number;
  /** Of an arrival. */
  from: NodeId;
  id: MessageId;
  /** The message, timer or command. */
  what: MessageOf<V> | TimerOf<V> | CommandOf<V> | null;
}

/** What is on its way, what waits and what timers are to fire: so much fits into the memory that Node takes by itself. */
const MAX_PENDING = 5_000_000;

export class PendingPool<V extends Vocabulary> {
  private readonly slots: Pending<V>[] = [];
  private readonly free: number[] = [];

  constructor(private readonly most = MAX_PENDING) {}

  at(slot: number): Pending<V> {
    return this.slots[slot] as Pending<V>;
  }

  /** @throws UsageError where there is more than a simulation holds */
  take(
    kind: Pending<V>["kind"],
    node: SimulatedNode<V>,
    number: number,
    from: NodeId,
    id: MessageId,
    what: Pending<V>["what"],
  ): number {
    const slot = this.free.pop();
    if (slot === undefined && this.slots.length >= this.most)
      throw new UsageError(
        "too-many-pending",
        `expected at most ${this.most} messages and timers to be under way at a time, got more: use fewer nodes`,
      );
    if (slot === undefined) return this.slots.push({ kind, node, number, from, id, what }) - 1;
    const pending = this.at(slot);
    pending.kind = kind;
    pending.node = node;
    pending.number = number;
    pending.from = from;
    pending.id = id;
    pending.what = what;
    return slot;
  }

  release(slot: number): void {
    this.free.push(slot);
  }
}
