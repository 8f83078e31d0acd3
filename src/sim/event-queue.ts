/** A binary heap of events, earliest first; events of the same time leave in the order in which they came. */
export interface EventQueue<E> {
  readonly size: number;
  push(at: number, event: E): void;
  /** The time of the earliest event, or infinity. */
  next(): number;
  pop(): E | undefined;
}

interface Slot<E> {
  readonly at: number;
  readonly order: number;
  readonly event: E;
}

export function eventQueue<E>(): EventQueue<E> {
  const heap: Slot<E>[] = [];
  let pushed = 0;
  const before = (a: Slot<E>, b: Slot<E>): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
  const slot = (i: number): Slot<E> => heap[i] as Slot<E>;

  function rise(from: number): void {
    const moving = slot(from);
    let i = from;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(moving, slot(parent))) break;
      heap[i] = slot(parent);
      i = parent;
    }
    heap[i] = moving;
  }

  function sink(): void {
    const moving = slot(0);
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(slot(child + 1), slot(child))) child += 1;
      if (!before(slot(child), moving)) break;
      heap[i] = slot(child);
      i = child;
    }
    heap[i] = moving;
  }

  return {
    get size() {
      return heap.length;
    },
    push(at, event) {
      heap.push({ at, order: pushed++, event });
      rise(heap.length - 1);
    },
    next: () => heap[0]?.at ?? Number.POSITIVE_INFINITY,
    pop() {
      const top = heap[0];
      const last = heap.pop();
      if (top === undefined || last === undefined) return undefined;
      if (heap.length > 0) {
        heap[0] = last;
        sink();
      }
      return top.event;
    },
  };
}
