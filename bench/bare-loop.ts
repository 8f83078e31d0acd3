/**
 * A simulator for Chang–Roberts only: a binary heap on typed arrays, pooled events, a table of handlers, FIFO links
 * with a constant delay, and states in typed arrays. It has no protocol contract, no node ids other than ring
 * positions, no faults and no trace. The simulator is compared with it as an upper bound.
 */
const ELECTION = 0;
const ELECTED = 1;

/**
 * Runs Chang–Roberts on a ring in this order, with all nodes starting an election at once. Returns the number of
 * messages.
 */
export function bareElection(ring: readonly number[], delayMs: number): number {
  const count = ring.length;
  const ids = Int32Array.from(ring);
  const isParticipant = new Uint8Array(count);
  const elected = new Int32Array(count).fill(-1);
  const lastArrival = new Float64Array(count);
  const heap = eventHeap(count);
  let now = 0;
  let messages = 0;

  function send(from: number, type: number, id: number): void {
    messages += 1;
    const at = Math.max(now + delayMs, lastArrival[from] as number);
    lastArrival[from] = at;
    heap.push(at, type, from + 1 === count ? 0 : from + 1, id);
  }

  const handlers: ((node: number, id: number) => void)[] = [];
  handlers[ELECTION] = (node, id) => {
    const own = ids[node] as number;
    if (id > own) {
      isParticipant[node] = 1;
      send(node, ELECTION, id);
    } else if (id < own) {
      if (isParticipant[node] === 1) return;
      isParticipant[node] = 1;
      send(node, ELECTION, own);
    } else {
      isParticipant[node] = 0;
      elected[node] = own;
      send(node, ELECTED, own);
    }
  };
  handlers[ELECTED] = (node, id) => {
    if (id === ids[node]) return;
    isParticipant[node] = 0;
    elected[node] = id;
    send(node, ELECTED, id);
  };

  for (let node = 0; node < count; node++) {
    isParticipant[node] = 1;
    send(node, ELECTION, ids[node] as number);
  }
  while (heap.size() > 0) {
    now = heap.due();
    const event = heap.pop();
    (handlers[heap.type(event)] as (typeof handlers)[number])(heap.to(event), heap.id(event));
  }
  const highest = ids.reduce((a, b) => Math.max(a, b));
  if (elected.some((each) => each !== highest)) throw new Error(`expected all nodes to elect ${highest}`);
  return messages;
}

/**
 * Creates a heap of events, ordered by due time, then by insertion order.
 * @param room the maximum number of events
 */
function eventHeap(room: number) {
  const types = new Uint8Array(room);
  const receivers = new Int32Array(room);
  const carried = new Int32Array(room);
  const free = Int32Array.from({ length: room }, (_, i) => i);
  let freeCount = room;
  // The due time, insertion order and event at each heap position.
  const times = new Float64Array(room);
  const turns = new Float64Array(room);
  const events = new Int32Array(room);
  let size = 0;
  let pushed = 0;

  return {
    size: () => size,
    due: () => times[0] as number,
    type: (event: number) => types[event] as number,
    to: (event: number) => receivers[event] as number,
    id: (event: number) => carried[event] as number,
    push(at: number, type: number, to: number, id: number): void {
      const event = free[--freeCount] as number;
      types[event] = type;
      receivers[event] = to;
      carried[event] = id;
      let i = size++;
      while (i > 0) {
        const parent = (i - 1) >> 1;
        if ((times[parent] as number) <= at) break; // A new event comes after existing events with the same due time.
        times[i] = times[parent] as number;
        turns[i] = turns[parent] as number;
        events[i] = events[parent] as number;
        i = parent;
      }
      times[i] = at;
      turns[i] = pushed++;
      events[i] = event;
    },
    /** Removes the first event. Its fields remain valid until the next push. */
    pop(): number {
      const top = events[0] as number;
      free[freeCount++] = top;
      size -= 1;
      const time = times[size] as number;
      const turn = turns[size] as number;
      const event = events[size] as number;
      let i = 0;
      for (;;) {
        let child = 2 * i + 1;
        if (child >= size) break;
        let childTime = times[child] as number;
        let childTurn = turns[child] as number;
        if (child + 1 < size) {
          const otherTime = times[child + 1] as number;
          const otherTurn = turns[child + 1] as number;
          if (otherTime < childTime || (otherTime === childTime && otherTurn < childTurn)) {
            child += 1;
            childTime = otherTime;
            childTurn = otherTurn;
          }
        }
        if (time < childTime || (time === childTime && turn < childTurn)) break;
        times[i] = childTime;
        turns[i] = childTurn;
        events[i] = events[child] as number;
        i = child;
      }
      times[i] = time;
      turns[i] = turn;
      events[i] = event;
      return top;
    },
  };
}
