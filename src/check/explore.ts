/**
 * Exhaustive exploration: every order of starts, deliveries, time-outs, commands, crashes, recoveries and losses within
 * the bounds, breadth first, so a counterexample is a shortest one.
 */
import type { Property, StateOf, Vocabulary } from "../core/protocol.ts";
import type { Outcome } from "./local-steps.ts";
import { Model, type ModelOptions, type Move } from "./model.ts";
import { Properties } from "./properties.ts";
import { StateStore } from "./state-store.ts";

export interface ExploreOptions<V extends Vocabulary> extends ModelOptions<V> {
  /** What to check; the protocol's own properties by default. */
  readonly properties?: readonly Property<V>[];
  /** Where this bound is hit and nothing was violated, the verdict is `unknown`. */
  readonly maxStates?: number;
  /** Asked now and then; false ends the search. */
  readonly mayGoOn?: (progress: Progress) => boolean;
}

export interface Progress {
  readonly states: number;
  readonly transitions: number;
  /** The number of transitions on the longest of the shortest paths so far. */
  readonly depth: number;
}

export interface Exploration<V extends Vocabulary> extends Progress {
  readonly verdict: "holds" | "violated" | "unknown";
  /** What is violated. */
  readonly property: Property<V> | null;
  /** A shortest way to the violation. */
  readonly path: readonly Taken<V>[];
  /** How often handlers ran: the rest was remembered. */
  readonly handlerRuns: number;
}

/** A move of a counterexample, and what it led to. */
export interface Taken<V extends Vocabulary> {
  readonly move: Move<V>;
  readonly outcome: Outcome<V> | null;
  /** The states of the nodes afterwards, in the order of `nodes`; null for a node that is down. */
  readonly states: readonly (StateOf<V> | null)[];
}

const ASK_EVERY = 1 << 13;
const DEFAULT_MAX_STATES = 100_000_000;

export function explore<V extends Vocabulary>(options: ExploreOptions<V>): Exploration<V> {
  const { maxStates = DEFAULT_MAX_STATES, mayGoOn = () => true } = options;
  const model = new Model(options);
  const properties = new Properties(model, options.properties ?? options.protocol.properties);
  const store = new StateStore(model.width);
  const parents = new Parents();
  const tuple = model.initial();
  let transitions = 0;
  let depth = 0;
  /** The last state of the layer that is being expanded. */
  let layerEnd = 0;
  let violated: Property<V> | null = properties.violatedBy(tuple);
  let last = store.add(tuple);
  let bounded = false;
  let id = 0;

  const visit = (): boolean => {
    transitions += 1;
    const found = store.add(model.next);
    if (found < 0) return false;
    parents.push(id);
    violated = properties.violatedBy(model.next);
    last = found;
    bounded = store.size >= maxStates;
    return violated !== null || bounded;
  };

  const progress = (): Progress => ({ states: store.size, transitions, depth });
  for (; id < store.size && violated === null && !bounded; id++) {
    if (id > layerEnd) {
      depth += 1;
      layerEnd = store.size - 1;
    }
    store.read(id, tuple);
    model.expand(tuple, visit);
    if (id % ASK_EVERY === ASK_EVERY - 1 && !mayGoOn(progress())) bounded = true;
  }
  const path = violated === null ? [] : pathTo(last, model, store, parents);
  return {
    ...progress(),
    depth: violated === null ? depth : path.length,
    verdict: violated !== null ? "violated" : bounded ? "unknown" : "holds",
    property: violated,
    path,
    handlerRuns: model.steps.handlerRuns,
  };
}

/** For each state but the first, the state from which it was found, in chunks that growing does not copy. */
class Parents {
  readonly #chunks: Int32Array[] = [];
  #size = 0;

  push(parent: number): void {
    const at = this.#size++ % CHUNK;
    if (at === 0) this.#chunks.push(new Int32Array(CHUNK));
    (this.#chunks.at(-1) as Int32Array)[at] = parent;
  }

  of(state: number): number {
    return (this.#chunks[Math.floor((state - 1) / CHUNK)] as Int32Array)[(state - 1) % CHUNK] as number;
  }
}
const CHUNK = 1 << 16;

/** How a state came about: its ancestors, and for each step the first transition that leads to the next of them. */
function pathTo<V extends Vocabulary>(state: number, model: Model<V>, store: StateStore, parents: Parents): Taken<V>[] {
  const ids = [state];
  while (ids[0] !== 0) ids.unshift(parents.of(ids[0] as number));
  const [from, to] = [new Int32Array(model.width), new Int32Array(model.width)];
  return ids.slice(1).map((id, i) => {
    store.read(ids[i] as number, from);
    store.read(id, to);
    let taken: Taken<V> | null = null;
    model.expand(from, (move, outcome) => {
      if (!model.next.every((value, k) => value === to[k])) return false;
      const states = model.options.nodes.map((_, k) => model.steps.locals.valueOf(to[k] as number).state);
      taken = { move: move(), outcome, states };
      return true;
    });
    return taken as unknown as Taken<V>;
  });
}
