/**
 * What the search works on: the operations of one object as integers.
 *
 * Operations that returned are numbered 0 … returned − 1 in the order of their calls; behind them come the pending ones.
 * Calls and returns of the former are *entries*, numbered by time from 1, calls before returns where times are equal.
 *
 * Which operations have been placed is noted in a few words (`wordOf`, `toggleOf`) that, together with the first return
 * still to come, name that set exactly. At any moment the operations under way occupy different *slots*, one bit each; a
 * slot that falls free is given to a later operation. All that returned before have been placed, so each has toggled
 * its bit, and what a bit means now follows from where we are. Hence the words are as wide as the concurrency, not as
 * the history is long. Pending operations never give a slot back; equal ones are placed in the order of their calls (see
 * search.ts), so a count per *kind* is enough.
 */
import type { Operation } from "./history.ts";
import type { Model } from "./model.ts";
import type { Transitions } from "./transitions.ts";

export interface Entries {
  /** By number. Pending operations that would change nothing are left out: it does not matter whether they happened. */
  readonly operations: readonly Operation[];
  readonly returned: number;
  /** The last entry: behind all returns. */
  readonly end: number;
  /** By entry: the operation it calls, or −1 for a return. */
  readonly calls: Int32Array;
  /** By entry: the operation that returns there, or −1 for a call. */
  readonly returns: Int32Array;
  /** By operation: its entries. A pending one has in `callEntry` the entry that its call precedes. */
  readonly callEntry: Int32Array;
  readonly returnEntry: Int32Array;
  /** By operation: its class (transitions.ts). Equal ones have the same. */
  readonly classOf: Int32Array;
  readonly observes: Uint8Array;
  /** By operation: one that has to be placed before it, or −1. */
  readonly prior: Int32Array;
  /** By operation: the lower, the sooner it is tried. */
  readonly rank: Float64Array;
  readonly words: number;
  readonly wordOf: Int32Array;
  readonly toggleOf: Int32Array;
  /** By operation: its kind if it is pending, or −1. Of kind k are the operations `kinds[k]` … `kinds[k + 1] − 1`. */
  readonly kindOf: Int32Array;
  readonly kinds: Int32Array;
}

const NONE = -1;

export function entriesOf(all: readonly Operation[], model: Model, { classify }: Transitions): Entries {
  const observer = (operation: Operation): boolean => model.calls[operation.f]?.observes?.(operation) ?? false;
  const byCall = [...all].sort((a, b) => a.call - b.call);
  const done = byCall.filter((operation) => operation.return !== null);
  // Grouped by class, within a class still in the order of calls.
  const pending = byCall
    .filter((operation) => operation.return === null && !observer(operation))
    .sort((a, b) => classify(a) - classify(b));
  const operations = [...done, ...pending];
  const classOf = Int32Array.from(operations.map(classify));
  const order = sequence(operations, done.length);
  const slots = slotsOf(done.length, order);
  const kinds = kindsOf(classOf, done.length, slots);
  return {
    operations,
    returned: done.length,
    ...order,
    ...slots,
    ...kinds,
    classOf,
    observes: Uint8Array.from(operations.map((operation) => (observer(operation) ? 1 : 0))),
    rank: ranks(operations, model.foresee?.(operations)),
    prior: priors(classOf, done.length, order.returnEntry),
  };
}

function ranks(operations: readonly Operation[], foreseen: readonly Operation[] | undefined): Float64Array {
  if (foreseen === undefined) return Float64Array.from(operations.map((operation) => operation.return ?? Infinity));
  const rankOf = new Map(foreseen.map((operation, rank) => [operation, rank]));
  return Float64Array.from(operations.map((operation) => rankOf.get(operation) ?? foreseen.length));
}

/** Sorts calls and returns into entries. */
function sequence(operations: readonly Operation[], returned: number) {
  const count = operations.length;
  // The number of an operation stands for its call, that number and `count` for its return.
  const times = new Float64Array(count + returned);
  for (const [op, one] of operations.entries()) {
    times[op] = one.call;
    if (op < returned) times[count + op] = one.return ?? 0;
  }
  // Calls have the smaller numbers, so they go first where times are equal.
  const happenings = Uint32Array.from(times.keys());
  happenings.sort((a, b) => (times[a] as number) - (times[b] as number) || a - b);
  const end = 2 * returned + 1;
  const calls = new Int32Array(end + 1).fill(NONE);
  const returns = new Int32Array(end + 1).fill(NONE);
  const callEntry = new Int32Array(count);
  const returnEntry = new Int32Array(count).fill(end);
  let entry = 1;
  for (const happening of happenings) {
    const isCall = happening < count;
    const op = isCall ? happening : happening - count;
    if (isCall) callEntry[op] = entry;
    if (op >= returned) continue; // A pending call only notes where it stands.
    if (isCall) calls[entry] = op;
    else {
      returns[entry] = op;
      returnEntry[op] = entry;
    }
    entry += 1;
  }
  return { end, calls, returns, callEntry, returnEntry };
}

/** One bit for every operation under way at the same time. */
function slotsOf(returned: number, { calls, returns, end }: ReturnType<typeof sequence>) {
  const slotOf = new Int32Array(returned);
  const free: number[] = [];
  let slots = 0;
  for (let entry = 1; entry < end; entry++) {
    const called = calls[entry] ?? NONE;
    if (called === NONE) free.push(slotOf[returns[entry] ?? 0] ?? 0);
    else slotOf[called] = free.pop() ?? slots++;
  }
  return { slotOf, slots };
}

/** Pending operations of one class form a kind, with a field that counts them. Also words and toggles of all. */
function kindsOf(classOf: Int32Array, returned: number, { slotOf, slots }: ReturnType<typeof slotsOf>) {
  const wordOf = new Int32Array(classOf.length);
  const toggleOf = new Int32Array(classOf.length);
  const kindOf = new Int32Array(classOf.length).fill(NONE);
  for (let op = 0; op < returned; op++) {
    const slot = slotOf[op] ?? 0;
    wordOf[op] = slot >>> 5;
    toggleOf[op] = 1 << (slot & 31);
  }
  const kinds: number[] = [];
  let bit = slots;
  for (let op = returned; op < classOf.length; ) {
    let after = op;
    while (after < classOf.length && classOf[after] === classOf[op]) after += 1;
    const width = 32 - Math.clz32(after - op);
    if ((bit & 31) + width > 32) bit = (bit | 31) + 1; // A field does not straddle two words.
    for (let member = op; member < after; member++) {
      const count = member - op;
      kindOf[member] = kinds.length;
      wordOf[member] = bit >>> 5;
      toggleOf[member] = (count ^ (count + 1)) << (bit & 31);
    }
    kinds.push(op);
    bit += width;
    op = after;
  }
  return { words: (bit + 31) >>> 5, wordOf, toggleOf, kindOf, kinds: Int32Array.from([...kinds, classOf.length]) };
}

/**
 * Of two equal operations, one called first and returned first, that one may be placed first: wherever it is not, the two
 * can change places. Noted for neighbours among equals; pending ones keep their order by being counted.
 */
function priors(classOf: Int32Array, returned: number, returnEntry: Int32Array): Int32Array {
  const prior = new Int32Array(classOf.length).fill(NONE);
  const latest = new Map<number, number>();
  for (let op = 0; op < returned; op++) {
    const number = classOf[op] ?? 0;
    const before = latest.get(number);
    if (before !== undefined && (returnEntry[before] ?? 0) < (returnEntry[op] ?? 0)) prior[op] = before;
    latest.set(number, op);
  }
  return prior;
}
