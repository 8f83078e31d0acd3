/**
 * The input to the search: the operations on one object, encoded as integers.
 *
 * Operations that returned are numbered 0 … returned − 1 in the order of their calls, and are followed by pending ones.
 * The calls and returns of operations that returned are *entries*. They are numbered by time starting from 1, with
 * calls before returns at equal times.
 *
 * The set of placed operations is encoded in a few words (`wordOf`, `toggleOf`), which identify the set exactly when
 * combined with the next return to reach. The operations in progress at any moment occupy different *slots* of one bit
 * each; a free slot is reused for a later operation. All operations that returned earlier have been placed, so each has
 * toggled its bit, and the current position determines the meaning of each bit. The number of words therefore depends
 * on the concurrency, not on the length of the history. Pending operations never free a slot. Equal pending operations
 * are placed in the order of their calls (see search.ts), so a count per *kind* is enough.
 */
import type { Operation } from "./history.ts";
import type { Model } from "./model.ts";
import type { Transitions } from "./transitions.ts";

/** The operations on one object, in the form that the search reads. */
export interface Entries {
  /**
   * The operations, by number. Pending operations that would not change anything are omitted, because it does not
   * matter whether they happened.
   */
  readonly operations: readonly Operation[];
  readonly returned: number;
  /** The position of the last entry, after all returns. */
  readonly end: number;
  /** For each entry, the operation that is called, or −1 if the entry is a return. */
  readonly calls: Int32Array;
  /** For each entry, the operation that returns, or −1 if the entry is a call. */
  readonly returns: Int32Array;
  /**
   * For each operation, the entries of its call and its return. For a pending operation, `callEntry` is the entry that
   * follows its call.
   */
  readonly callEntry: Int32Array;
  readonly returnEntry: Int32Array;
  /** For each operation, its class (see transitions.ts). Equal operations have the same class. */
  readonly classOf: Int32Array;
  readonly observes: Uint8Array;
  /** For each operation, an operation that must be placed before it, or −1 if there is none. */
  readonly prior: Int32Array;
  /** For each operation, its rank. Operations with lower ranks are tried first. */
  readonly rank: Float64Array;
  readonly words: number;
  readonly wordOf: Int32Array;
  readonly toggleOf: Int32Array;
  /**
   * For each operation, its kind if it is pending, or −1 if it returned. The operations of kind k are `kinds[k]` …
   * `kinds[k + 1] − 1`.
   */
  readonly kindOf: Int32Array;
  readonly kinds: Int32Array;
}

const NONE = -1;

/** Numbers the operations on one object. */
export function entriesOf(all: readonly Operation[], model: Model, { classify }: Transitions): Entries {
  const observer = (operation: Operation): boolean => model.calls[operation.f]?.observes?.(operation) ?? false;
  const byCall = [...all].sort((a, b) => a.call - b.call);
  const done = byCall.filter((operation) => operation.return !== null);
  // Pending operations are grouped by class. Within a class, they stay in the order of their calls.
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
  // Times are indexed by call and return. An operation's number is the index of its call; the number plus `count` is
  // the index of its return.
  const times = new Float64Array(count + returned);
  for (const [op, one] of operations.entries()) {
    times[op] = one.call;
    if (op < returned) times[count + op] = one.return ?? 0;
  }
  // Calls have lower indexes, so they come first at equal times.
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
    if (op >= returned) continue; // For a pending call, only the position is recorded.
    if (isCall) calls[entry] = op;
    else {
      returns[entry] = op;
      returnEntry[op] = entry;
    }
    entry += 1;
  }
  return { end, calls, returns, callEntry, returnEntry };
}

/** Assigns slots, which are bits. Operations that are in progress at the same time get different slots. */
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

/**
 * Groups pending operations of the same class into a kind, with a field that counts them. Also computes the words and
 * toggles of all operations.
 */
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
    if ((bit & 31) + width > 32) bit = (bit | 31) + 1; // A field must not cross a word boundary.
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
 * Finds the operations that must be placed before others. If one of two equal operations was both called first and
 * returned first, it can be placed first, because any other order can be changed by swapping the two. This is recorded
 * for adjacent equal operations. Pending ones are ordered by their count.
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
