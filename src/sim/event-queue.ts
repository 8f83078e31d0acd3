import { UsageError } from "../core/errors.ts";
import type { CommandOf, MessageOf, NodeId, TimerOf, Vocabulary } from "../core/protocol.ts";
import type { MessageId } from "../trace/entry.ts";
import type { SimulatedNode } from "./simulated-node.ts";

/**
 * A queue of future events, earliest first. Simultaneous events leave in the order of insertion. The queue consists of
 * a binary heap on typed arrays and a lane for events that are already inserted in chronological order, such as all
 * messages if every link has the same constant delay. The lane needs no sorting.
 */
export interface EventQueue {
  readonly size: number;
  /** Adds an event. `slot` is any 32-bit integer that identifies the event to the caller. */
  push(at: number, slot: number): void;
  /** Returns the time of the earliest event, or infinity if the queue is empty. */
  next(): number;
  /** Removes the earliest event and returns its slot. The queue must not be empty. */
  pop(): number;
  /** Calls `see` for every event, in no particular order. */
  forEach(see: (at: number, slot: number) => void): void;
}

/**
 * The initial capacity. V8 allocates typed arrays of up to 64 bytes on its own heap. Larger ones would dominate the
 * cost of a short run.
 */
const FIRST_ROOM = 8;

/** Events in columns: the time, the sequence number among events at the same time, and the slot. */
class Columns {
  size = 0;
  at = new Float64Array(FIRST_ROOM);
  turn = new Float64Array(FIRST_ROOM);
  slot = new Int32Array(FIRST_ROOM);

  /** Doubles the capacity. Moves the contents, which start at `from` and wrap around at the end, to index 0. */
  grow(from: number): void {
    const unrolled = <A extends Float64Array | Int32Array>(column: A, wider: A): A => {
      wider.set(column.subarray(from));
      wider.set(column.subarray(0, from), column.length - from);
      return wider;
    };
    const room = 2 * this.slot.length;
    this.at = unrolled(this.at, new Float64Array(room));
    this.turn = unrolled(this.turn, new Float64Array(room));
    this.slot = unrolled(this.slot, new Int32Array(room));
  }

  move(from: number, to: number): void {
    this.at[to] = this.at[from] as number;
    this.turn[to] = this.turn[from] as number;
    this.slot[to] = this.slot[from] as number;
  }

  isBefore(i: number, at: number, turn: number): boolean {
    const own = this.at[i] as number;
    return own < at || (own === at && (this.turn[i] as number) < turn);
  }
}

/**
 * The event queue. Like everything that each run allocates, it is a class, because V8 retains the hidden class of an
 * object literal that has a getter, along with everything reachable from the getter, until the next full garbage
 * collection.
 */
class HeapAndLane implements EventQueue {
  readonly #heap = new Columns();
  readonly #lane = new Columns();
  #head = 0;
  #latestInLane = Number.NEGATIVE_INFINITY;
  #pushed = 0;

  get size(): number {
    return this.#heap.size + this.#lane.size;
  }

  push(at: number, slot: number): void {
    if (this.#lane.size === 0 || at >= this.#latestInLane) this.#enqueue(at, slot);
    else this.#rise(at, slot);
  }

  next(): number {
    const heap = this.#heap;
    if (this.#isLaneNext()) return this.#lane.at[this.#head] as number;
    return heap.size === 0 ? Number.POSITIVE_INFINITY : (heap.at[0] as number);
  }

  pop(): number {
    if (this.#isLaneNext()) {
      const lane = this.#lane;
      const slot = lane.slot[this.#head] as number;
      this.#head = (this.#head + 1) & (lane.slot.length - 1);
      lane.size -= 1;
      return slot;
    }
    const slot = this.#heap.slot[0] as number;
    this.#sink();
    return slot;
  }

  forEach(see: (at: number, slot: number) => void): void {
    const heap = this.#heap;
    const lane = this.#lane;
    for (let i = 0; i < heap.size; i++) see(heap.at[i] as number, heap.slot[i] as number);
    for (let i = 0; i < lane.size; i++) {
      const place = (this.#head + i) & (lane.slot.length - 1);
      see(lane.at[place] as number, lane.slot[place] as number);
    }
  }

  #enqueue(at: number, slot: number): void {
    const lane = this.#lane;
    if (lane.size === lane.slot.length) {
      lane.grow(this.#head);
      this.#head = 0;
    }
    const end = (this.#head + lane.size) & (lane.slot.length - 1);
    lane.at[end] = at;
    lane.turn[end] = this.#pushed++;
    lane.slot[end] = slot;
    lane.size += 1;
    this.#latestInLane = at;
  }

  #rise(at: number, slot: number): void {
    const heap = this.#heap;
    if (heap.size === heap.slot.length) heap.grow(0);
    const { at: times, turn: turns, slot: slots } = heap;
    let i = heap.size++;
    // Everything in the heap was inserted earlier, so sequence numbers need not be compared when times are equal.
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if ((times[parent] as number) <= at) break;
      heap.move(parent, i);
      i = parent;
    }
    times[i] = at;
    turns[i] = this.#pushed++;
    slots[i] = slot;
  }

  /** Fills the gap at the top with the last event, which is sifted down to its position. */
  #sink(): void {
    const heap = this.#heap;
    const { at: times, turn: turns } = heap;
    const size = --heap.size;
    const at = times[size] as number;
    const turn = turns[size] as number;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && heap.isBefore(child + 1, times[child] as number, turns[child] as number)) child += 1;
      if (!heap.isBefore(child, at, turn)) break;
      heap.move(child, i);
      i = child;
    }
    heap.move(size, i);
  }

  #isLaneNext(): boolean {
    const heap = this.#heap;
    const lane = this.#lane;
    if (lane.size === 0) return false;
    return heap.size === 0 || !heap.isBefore(0, lane.at[this.#head] as number, lane.turn[this.#head] as number);
  }
}

export const eventQueue = (): EventQueue => new HeapAndLane();

/** A future event at a node. */
export interface Pending<V extends Vocabulary> {
  /** The kind of event. `turn`: the node has finished its last stimulus and takes the next one from its queue. */
  kind: "arrival" | "timeout" | "command" | "turn";
  node: SimulatedNode<V>;
  /** For a timeout, the number of the arming. Otherwise, the incarnation of the receiver. */
  number: number;
  /** The sender, for arrivals only. */
  from: NodeId;
  id: MessageId;
  /** The message, timer or command. Null for a turn. */
  what: MessageOf<V> | TimerOf<V> | CommandOf<V> | null;
}

/** The maximum number of messages in flight, waiting stimuli and timers. This many fit into Node's default heap. */
const MAX_PENDING = 5_000_000;

/** A pool that reuses `Pending` objects, so that the simulation allocates none per event. */
export class PendingPool<V extends Vocabulary> {
  private readonly slots: Pending<V>[] = [];
  private readonly free: number[] = [];

  constructor(private readonly most = MAX_PENDING) {}

  at(slot: number): Pending<V> {
    return this.slots[slot] as Pending<V>;
  }

  /** Takes an object from the pool. @throws UsageError if the simulation exceeds the limit */
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
        `expected at most ${this.most} messages and timers to be pending at a time, got more: use fewer nodes`,
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
