/**
 * Representatives of equivalent states, which differ only in how far their counters have advanced. Each local state and
 * content is rewritten once, and the result is cached.
 */
import type { NodeId, Vocabulary } from "../core/protocol.ts";
import type { Local, LocalSteps } from "./local-steps.ts";
import type { Network } from "./network.ts";

export interface RepresentativesOptions<V extends Vocabulary> {
  readonly steps: LocalSteps<V>;
  readonly network: Network;
  readonly nodes: readonly NodeId[];
  readonly counters: readonly string[];
  readonly rounds: readonly string[];
  /** Whether nodes may crash and recover. */
  readonly mayReturn: boolean;
}

/** Maps each state to the representative of its equivalence class. */
export class Representatives<V extends Vocabulary> {
  readonly #options: RepresentativesOptions<V>;
  readonly #shifted = new Map<number, Rewritten<V>>();
  readonly #closed = new Map<string, Rewritten<V>>();
  readonly #roundsOfLocal: (readonly number[])[] = [];
  readonly #roundsOfContent: (readonly number[])[] = [];
  readonly #lowestOfLocal: number[] = [];
  readonly #lowestOfContent: number[] = [];

  constructor(options: RepresentativesOptions<V>) {
    this.#options = options;
  }

  /** Replaces a state with its representative. The budgets do not change. */
  represent(tuple: Int32Array): void {
    if (this.#options.counters.length > 0) this.#lowerCounters(tuple);
    if (this.#options.rounds.length > 0) this.#closeUp(tuple);
  }

  /** Shifts all counters so that the lowest becomes 0. */
  #lowerCounters(tuple: Int32Array): void {
    const count = this.#options.nodes.length;
    let lowest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < count; i++) {
      lowest = Math.min(lowest, this.#lowestIn(tuple[i] as number), this.#lowestOn(tuple[count + i] as number));
    }
    if (lowest === 0 || lowest === Number.POSITIVE_INFINITY) return;
    let shift = this.#shifted.get(lowest);
    if (shift === undefined) {
      const { counters } = this.#options;
      shift = new Rewritten(this.#options, (value) => recounted(value, counters, (count) => count - lowest));
      this.#shifted.set(lowest, shift);
    }
    for (let i = 0; i < count; i++) {
      tuple[i] = shift.local(tuple[i] as number);
      tuple[count + i] = shift.content(tuple[count + i] as number);
    }
  }

  #closeUp(tuple: Int32Array): void {
    const { rounds, nodes } = this.#options;
    const count = nodes.length;
    const found: number[] = [];
    for (let i = 0; i < count; i++)
      found.push(...this.#roundsIn(tuple[i] as number), ...this.#roundsOn(tuple[count + i] as number));
    const closed = closedUp(found);
    if ([...closed].every(([before, after]) => before === after)) return;
    const key = [...closed].join(" ");
    let rewritten = this.#closed.get(key);
    if (rewritten === undefined) {
      rewritten = new Rewritten(this.#options, (value) =>
        recounted(value, rounds, (round) => closed.get(round) ?? round),
      );
      this.#closed.set(key, rewritten);
    }
    for (let i = 0; i < count; i++) {
      tuple[i] = rewritten.local(tuple[i] as number);
      tuple[count + i] = rewritten.content(tuple[count + i] as number);
    }
  }

  #roundsIn(local: number): readonly number[] {
    const { steps, rounds } = this.#options;
    if (this.#roundsOfLocal[local] === undefined) {
      const { state, journal, history } = steps.locals.valueOf(local);
      this.#roundsOfLocal[local] = countsIn([state, journal, history], rounds);
    }
    return this.#roundsOfLocal[local];
  }

  #roundsOn(content: number): readonly number[] {
    const { network, steps, rounds } = this.#options;
    this.#roundsOfContent[content] ??= network
      .envelopes(content)
      .flatMap(({ message }) => countsIn(steps.messages.valueOf(message), rounds));
    return this.#roundsOfContent[content];
  }

  #lowestIn(local: number): number {
    const { steps, counters, mayReturn } = this.#options;
    const known = this.#lowestOfLocal[local];
    if (known !== undefined) return known;
    const { status, state, journal, history } = steps.locals.valueOf(local);
    // A starting node continues from its journal, which must match in all states that are merged.
    const next = status === "new" || mayReturn ? steps.replayed(local) : null;
    const lowest = lowestCount([state, journal, next, history], counters);
    this.#lowestOfLocal[local] = lowest;
    return lowest;
  }

  #lowestOn(content: number): number {
    const { network, steps, counters } = this.#options;
    this.#lowestOfContent[content] ??= lowestCount(
      network.envelopes(content).map(({ message }) => steps.messages.valueOf(message)),
      counters,
    );
    return this.#lowestOfContent[content];
  }
}

/** Rewritten local states and contents, keyed by number. */
class Rewritten<V extends Vocabulary> {
  readonly #within: Pick<RepresentativesOptions<V>, "steps" | "network">;
  readonly #rewrite: <T>(value: T) => T;
  readonly #locals: number[] = [];
  readonly #contents: number[] = [];

  constructor(within: Pick<RepresentativesOptions<V>, "steps" | "network">, rewrite: <T>(value: T) => T) {
    this.#within = within;
    this.#rewrite = rewrite;
  }

  local(id: number): number {
    this.#locals[id] ??= this.#rewriteLocal(this.#within.steps.locals.valueOf(id));
    return this.#locals[id];
  }

  content(id: number): number {
    this.#contents[id] ??= this.#rewriteContent(id);
    return this.#contents[id];
  }

  #rewriteLocal(local: Local<V>): number {
    const { state, journal, history } = local;
    return this.#within.steps.locals.idOf({ ...local, ...this.#rewrite({ state, journal, history }) });
  }

  #rewriteContent(id: number): number {
    const { network, steps } = this.#within;
    return network.rewritten(id, (envelope) => {
      const { from, message } = network.envelopeOf(envelope);
      return network.envelopeId(from, steps.messages.idOf(this.#rewrite(steps.messages.valueOf(message))));
    });
  }
}

/** Returns the lowest value of the named fields. Infinity if there are no such fields. */
export function lowestCount(data: unknown, names: readonly string[]): number {
  if (typeof data !== "object" || data === null) return Number.POSITIVE_INFINITY;
  let lowest = Number.POSITIVE_INFINITY;
  for (const [name, value] of Object.entries(data)) {
    const count = isCounter(name, value, names) ? value : lowestCount(value, names);
    lowest = Math.min(lowest, count);
  }
  return lowest;
}

const isCounter = (name: string, value: unknown, names: readonly string[]): value is number =>
  typeof value === "number" && names.includes(name);

/** Returns all values of the named fields, in no particular order. */
export function countsIn(data: unknown, names: readonly string[]): number[] {
  if (typeof data !== "object" || data === null) return [];
  return Object.entries(data).flatMap(([name, value]) =>
    isCounter(name, value, names) ? [value] : countsIn(value, names),
  );
}

/** Returns a copy with each named field replaced. */
export function recounted<T>(data: T, names: readonly string[], as: (count: number) => number): T {
  if (typeof data !== "object" || data === null) return data;
  if (Array.isArray(data)) return data.map((item) => recounted(item, names, as)) as T;
  const copy = Object.entries(data).map(([name, value]) => [
    name,
    isCounter(name, value, names) ? as(value) : recounted(value, names, as),
  ]);
  return Object.fromEntries(copy) as T;
}

/** Maps numbers to smaller ones: gaps larger than three become gaps of two or three. */
export function closedUp(counts: Iterable<number>): Map<number, number> {
  const closed = new Map<number, number>();
  let [before, after] = [0, 0];
  for (const count of [...new Set(counts)].sort((a, b) => a - b)) {
    const gap = count - before;
    after += gap > 3 ? 2 + (gap % 2) : gap;
    before = count;
    closed.set(count, after);
  }
  return closed;
}
