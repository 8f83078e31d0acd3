/**
 * What is still to happen, earliest first; what is due at one time leaves in the order in which it came. A binary heap
 * on typed arrays, and before it a lane for whatever comes in the order of time anyway, as all messages do where every
 * link has the same constant delay: there, nothing is ever sorted.
 */
export interface EventQueue {
  readonly size: number;
  /** `slot` is whatever 32-bit integer the caller knows the event by. */
  push(at: number, slot: number): void;
  /** The time of the earliest event, or infinity. */
  next(): number;
  /** The slot of the earliest event, which leaves. Not to be called on an empty queue. */
  pop(): number;
  /** All events, in no order. */
  forEach(see: (at: number, slot: number) => void): void;
}

/** Events side by side, each with its time, its turn among those of equal time, and its slot. */
class Columns {
  size = 0;
  at = new Float64Array(64);
  turn = new Float64Array(64);
  slot = new Int32Array(64);

  /** Doubles the room. What begins at `from`, going round the end, begins at 0 afterwards. */
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
}

export function eventQueue(): EventQueue {
  const heap = new Columns();
  const lane = new Columns();
  let head = 0;
  let latestInLane = Number.NEGATIVE_INFINITY;
  let pushed = 0;

  function enqueue(at: number, slot: number): void {
    if (lane.size === lane.slot.length) {
      lane.grow(head);
      head = 0;
    }
    const end = (head + lane.size) & (lane.slot.length - 1);
    lane.at[end] = at;
    lane.turn[end] = pushed++;
    lane.slot[end] = slot;
    lane.size += 1;
    latestInLane = at;
  }

  function rise(at: number, slot: number): void {
    if (heap.size === heap.slot.length) heap.grow(0);
    const { at: times, turn: turns, slot: slots } = heap;
    let i = heap.size++;
    // Nothing in the heap came later than this one, so equal times need no look at the turn.
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if ((times[parent] as number) <= at) break;
      move(parent, i);
      i = parent;
    }
    times[i] = at;
    turns[i] = pushed++;
    slots[i] = slot;
  }

  function move(from: number, to: number): void {
    heap.at[to] = heap.at[from] as number;
    heap.turn[to] = heap.turn[from] as number;
    heap.slot[to] = heap.slot[from] as number;
  }

  /** Fills the gap at the top with the last event, at its place. */
  function sink(): void {
    const { at: times, turn: turns } = heap;
    const size = --heap.size;
    const at = times[size] as number;
    const turn = turns[size] as number;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && isBefore(child + 1, times[child] as number, turns[child] as number)) child += 1;
      if (!isBefore(child, at, turn)) break;
      move(child, i);
      i = child;
    }
    move(size, i);
  }

  function isBefore(i: number, at: number, turn: number): boolean {
    const own = heap.at[i] as number;
    return own < at || (own === at && (heap.turn[i] as number) < turn);
  }

  const isLaneNext = (): boolean =>
    lane.size > 0 && (heap.size === 0 || !isBefore(0, lane.at[head] as number, lane.turn[head] as number));

  return {
    get size() {
      return heap.size + lane.size;
    },
    push(at, slot) {
      if (lane.size === 0 || at >= latestInLane) enqueue(at, slot);
      else rise(at, slot);
    },
    next() {
      if (isLaneNext()) return lane.at[head] as number;
      return heap.size === 0 ? Number.POSITIVE_INFINITY : (heap.at[0] as number);
    },
    pop() {
      if (isLaneNext()) {
        const slot = lane.slot[head] as number;
        head = (head + 1) & (lane.slot.length - 1);
        lane.size -= 1;
        return slot;
      }
      const slot = heap.slot[0] as number;
      sink();
      return slot;
    },
    forEach(see) {
      for (let i = 0; i < heap.size; i++) see(heap.at[i] as number, heap.slot[i] as number);
      for (let i = 0; i < lane.size; i++) {
        const place = (head + i) & (lane.slot.length - 1);
        see(lane.at[place] as number, lane.slot[place] as number);
      }
    },
  };
}
