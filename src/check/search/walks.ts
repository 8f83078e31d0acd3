/**
 * Random search, for systems with too many states to visit them all. It performs random runs, one after another, in the
 * same model that exploration uses. It can find violations but proves nothing. A run depends only on the seed and the
 * run's number.
 */
import type { NodeId, Property, Vocabulary } from "../../core/protocol.ts";
import { type Random, random } from "../../core/random.ts";
import { failureProperty, type HandlerFailure } from "../../driver/handler-failure.ts";
import { needed, type Rules, requireOptions } from "../../protocols/known-options.ts";
import { type Exploration, type ExploreOptions, exploreRules, type Progress, type Witness } from "../explore.ts";
import { FailedMove } from "../failed-move.ts";
import type { Outcome } from "../local-steps.ts";
import { Model, type ModelOptions, type Move } from "../model.ts";
import { type choices, requireTime, walkRules } from "../model-options.ts";
import { type Taken, takenOf } from "../path.ts";
import { Judge } from "../properties.ts";
import { type Reach, reachTogether } from "../reach.ts";
import { isFault, mix, Successors, type Way } from "./successors.ts";

/**
 * Options of `walk`. The model's `counters` and `rounds` are ignored, because they serve only to merge states, and
 * random runs do not compare states.
 */
export interface WalkOptions<V extends Vocabulary> extends ModelOptions<V> {
  /** How the next move is chosen: `random`, `pct` or `swarm`. */
  readonly strategy: Strategy;
  /** The seed of the random choices. Equal seeds and options give equal runs. */
  readonly seed: number;
  /** The number of runs. Default: 10,000. */
  readonly runs?: number;
  /** The number of the first run, starting from 0. With `runs: 1`, only that run is performed, to replay it. */
  readonly firstRun?: number;
  /**
   * The numbers of the runs to perform, instead of `runs` consecutive numbers starting at `firstRun`. Searches with the
   * same seed can divide the numbers among themselves.
   */
  readonly numbers?: Iterable<number>;
  /** The maximum number of moves in one run. Default: 500. */
  readonly stepsPerRun?: number;
  /** For `pct`, the number of ordering constraints between events that it takes to trigger a bug. Default: 3. */
  readonly bugDepth?: number;
  /** Called after every run. Return false to stop the search. */
  readonly mayGoOn?: (progress: WalkProgress) => boolean;
}

/** The progress of a random search. */
export interface WalkProgress extends Progress {
  /** The number of completed runs. */
  readonly runs: number;
}

/**
 * The result of a random search. `states` counts visits, including repeated visits to a state; `transitions` counts
 * moves; `depth` is the length of the longest run. The path may be longer than necessary; use `shrink` to shorten it.
 */
export interface WalkResult<V extends Vocabulary> extends Exploration<V>, WalkProgress {
  /** The verdict. It is never `holds`, because random runs prove nothing. */
  readonly verdict: "violated" | "unknown";
  /** The number of the run that ends in the violation. Null if no run does. */
  readonly violatingRun: number | null;
}

/**
 * The rules for the options. The bounds of an exploration are accepted but ignored, so one set of options works for
 * both.
 */
const rules: Rules<WalkOptions<Vocabulary> & ExploreOptions<Vocabulary>> = {
  ...exploreRules,
  strategy: needed(walkRules.strategy),
  seed: needed(walkRules.seed),
};

/**
 * Performs random runs until one violates a property.
 *
 * @returns the violation, if a run found one
 * @example
 * const system = systemFor({ protocol: "raft", variant: "lecture", nodes: [0, 1, 2], crashes: 1, recoveries: 1 });
 * const { verdict, violatingRun } = walk({ ...system, strategy: "pct", seed: 1 });
 * @throws UsageError if an option is invalid
 */
export function walk<V extends Vocabulary>(options: WalkOptions<V>): WalkResult<V> {
  requireOptions("walk", options, rules);
  requireTime("walk", options);
  const { runs = 10_000, firstRun = 0, mayGoOn = () => true } = options;
  const { numbers = range(firstRun, firstRun + runs) } = options;
  let walker = new Walker(options);
  const witnesses = new Map<string, Witness<V>>();
  let violated: Property<V> | null = null;
  let violatingRun: number | null = null;
  let [done, transitions, depth, handlerRuns] = [0, 0, 0, 0];
  const reached: Reach[] = [];
  const progress = (): WalkProgress => ({ runs: done, states: transitions + done, transitions, depth });
  for (const number of numbers) {
    violated = walker.run(number);
    if (violated !== null) violatingRun = number;
    done += 1;
    transitions += walker.length;
    depth = Math.max(depth, walker.length);
    for (const witness of walker.witnesses) {
      if (!witnesses.has(witness.property.name)) witnesses.set(witness.property.name, witness);
    }
    if (!mayGoOn(progress()) || violated !== null) break;
    if (!walker.isFull) continue;
    walker.model.steps.requireRepeatable();
    handlerRuns += walker.model.steps.handlerRuns;
    reached.push(walker.model.steps.reaching.reach);
    walker = new Walker(options);
  }
  walker.model.steps.requireRepeatable();
  return {
    ...progress(),
    verdict: violated === null ? "unknown" : "violated",
    property: violated,
    failure: walker.failure,
    path: violated === null ? [] : walker.path(),
    handlerRuns: handlerRuns + walker.model.steps.handlerRuns,
    reach: reachTogether(options.protocol, [...reached, walker.model.steps.reaching.reach]),
    violatingRun,
    witnesses: [...witnesses.values()],
    loop: violated?.when === "leadsTo" || violated?.when === "eventually" ? walker.length : null,
  };
}

function* range(from: number, to: number): Iterable<number> {
  for (let number = from; number < to; number++) yield number;
}

/** The maximum number of cached local states and contents. A model that exceeds it is replaced with a new one. */
const MAX_REMEMBERED = 100_000;

/**
 * The maximum number of outcomes of a step. A Byzantine node that may send anything to any node has steps with more
 * outcomes than a run could ever use.
 */
const MAX_OUTCOMES = 256;

class Walker<V extends Vocabulary> {
  readonly #options: WalkOptions<V>;
  readonly model: Model<V>;
  /** The witnesses found by this walker's runs. */
  readonly witnesses: Witness<V>[] = [];
  /** The number of moves in the last run. */
  length = 0;
  /** The failure, if a handler threw in the last move. Otherwise null. */
  failure: HandlerFailure | null = null;
  readonly #judge: Judge<V>;
  readonly #steps: number;
  readonly #successors: Successors<V>;
  readonly #moves: Move<V>[] = [];
  readonly #outcomes: (Outcome<V> | null)[] = [];
  /** The states in the last run, including the initial state. */
  readonly #states: Int32Array[] = [];

  constructor(options: WalkOptions<V>) {
    this.#options = options;
    const { counters: _counted, rounds: _closed, ...plain } = options;
    this.model = new Model(plain, MAX_OUTCOMES);
    this.#judge = new Judge(this.model, options.properties ?? options.protocol.properties);
    this.#successors = new Successors(this.model);
    this.#steps = options.stepsPerRun ?? 500;
    this.#states.push(this.model.initial());
  }

  /** Performs one run, until a property is violated, no move is possible, or the maximum number of moves is reached. */
  run(number: number): Property<V> | null {
    const successors = this.#successors;
    const { strategy, seed, bugDepth = 3 } = this.#options;
    const chance = random(seed).stream(`run ${number}`);
    const pick = pickers[strategy]({ options: this.#options, chance, steps: this.#steps, bugDepth });
    const endings = chance.stream("endings");
    this.length = 0;
    let violated = this.#look();
    while (violated === null && this.length < this.#steps) {
      successors.gather(this.#state(this.length));
      // Only faults are possible, so the run may stay in this state forever.
      if (!successors.isBound) violated = this.#judge.brokenBy((moves) => this.#states[this.length - moves] ?? null);
      if (violated !== null || !this.#takeOne(pick, endings)) return violated;
      violated = this.failure === null ? this.#look() : failureProperty(this.failure);
    }
    return violated;
  }

  /** Whether the model should be replaced. Its local states and contents are numbered in the order of discovery. */
  get isFull(): boolean {
    return this.#state(this.length).some((number) => number > MAX_REMEMBERED);
  }

  path(): Taken<V>[] {
    return Array.from({ length: this.length }, (_, at) =>
      takenOf(this.model, this.#moves[at] as Move<V>, this.#outcomes[at] ?? null, this.#state(at + 1)),
    );
  }

  #look(): Property<V> | null {
    const state = this.#state(this.length);
    for (const property of this.#judge.foundIn(state)) this.witnesses.push({ property, path: this.path() });
    return this.#judge.violatedBy(state);
  }

  /** Takes the picked move, or a different one if bounds exclude it. Returns false if no move is possible. */
  #takeOne(pick: Picker<V>, endings: Random): boolean {
    const successors = this.#successors;
    for (;;) {
      const at = pick(successors, this.length);
      if (at < 0) return false;
      const ways = this.#waysOf(at);
      const way = ways[endings.below(ways.length)];
      if (way === undefined) {
        successors.drop(at);
        continue;
      }
      this.#moves[this.length] = successors.moves[at] as Move<V>;
      this.#outcomes[this.length] = way.outcome;
      this.length += 1;
      this.#states[this.length] = way.tuple;
      return true;
    }
  }

  /**
   * Returns the outcomes of a move. If its handler throws, there is a single outcome, which leaves the state unchanged.
   */
  #waysOf(at: number): Way<V>[] {
    try {
      return this.#successors.waysOf(at);
    } catch (error) {
      if (!(error instanceof FailedMove)) throw error;
      this.failure = error.failure;
      return [{ tuple: this.#state(this.length), outcome: null }];
    }
  }

  #state(index: number): Int32Array {
    return this.#states[index] as Int32Array;
  }
}

/** How a random run chooses its next move. */
export type Strategy = (typeof choices.strategy)[number];

/** A strategy for one run. Returns the index of the next move, or −1 to end the run. */
export type Picker<V extends Vocabulary> = (successors: Successors<V>, step: number) => number;

/** The fixed data for one random run. */
export interface Plan<V extends Vocabulary> {
  readonly options: ModelOptions<V>;
  readonly chance: Random;
  readonly steps: number;
  /**
   * For PCT, the number of ordering constraints between events that it takes to trigger a bug. A run changes priorities
   * one time fewer.
   */
  readonly bugDepth: number;
}

/** Returns a picker that picks all moves with equal probability. */
function uniform<V extends Vocabulary>({ chance }: Plan<V>): Picker<V> {
  const order = chance.stream("order");
  return (successors) => {
    const draw = order.bits();
    return best(successors, (at) => mix(draw, successors.identities[at] as number));
  };
}

/**
 * Implements probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi & Nagarakatte, ASPLOS 2010) for
 * messages. Each link is a chain with a random priority, and so are each node's own steps. The chain with the highest
 * priority continues, and at `bugDepth` − 1 random steps it falls below all others. Faults happen at random steps. The
 * assumed length of the run is random as well. Beyond that length, moves are picked uniformly, so that a timer that is
 * always armed does not starve the rest.
 */
function pct<V extends Vocabulary>(plan: Plan<V>): Picker<V> {
  const { options, chance, steps, bugDepth } = plan;
  const draws = chance.stream("plan");
  const horizon = Math.min(steps, Math.round(2 ** draws.between(3, 9)));
  const priorities = draws.bits();
  const changes = new Set(Array.from({ length: bugDepth - 1 }, () => draws.below(horizon)));
  const faultCount =
    (options.crashes ?? 0) + (options.losses ?? 0) + (options.duplications ?? 0) + (options.pauses ?? 0);
  const faults = new Set(Array.from({ length: Math.min(faultCount, horizon) }, () => draws.below(horizon)));
  /** The lowered chains, from highest to lowest. */
  const fallen: number[] = [];
  const within = chance.stream("order");
  const after = uniform(plan);

  return (successors, step) => {
    if (step >= horizon) return after(successors, step);
    const draw = within.bits();
    const pick = (strikes: boolean): number =>
      best(successors, (at) => {
        const move = successors.moves[at] as Move<V>;
        if (isFault(move) !== strikes) return Number.NEGATIVE_INFINITY;
        const tie = mix(draw, successors.identities[at] as number) / 2 ** 32;
        if (strikes) return tie;
        const rank = fallen.indexOf(chainOf(move));
        return (rank < 0 ? mix(priorities, chainOf(move)) : -1 - rank) + tie;
      });
    if (faults.delete(step)) {
      const struck = pick(true);
      if (struck >= 0) return struck;
      faults.add(step + 1); // No fault is possible yet.
    }
    const next = pick(false);
    if (next < 0 || !changes.delete(step)) return next;
    fallen.push(chainOf(successors.moves[next] as Move<V>));
    return pick(false);
  };
}

/**
 * Implements swarm testing (Groce, Zhang, Eide, Chen & Regehr, ISSTA 2012). Each run draws which kinds of faults occur,
 * and which nodes, links, timers and commands are fast or slow. Runs without some features reach states that runs with
 * all features rarely reach.
 */
function swarm<V extends Vocabulary>({ chance }: Plan<V>): Picker<V> {
  const plan = chance.stream("plan").bits();
  const order = chance.stream("order");
  const drawn = (weights: readonly number[], purpose: number, a: number, b = 0): number =>
    weights[mix(mix(mix(plan, purpose), a), b) % weights.length] as number;
  const weightOf = (move: Move<V>): number => {
    const place = drawn(PACES, 1, move.node);
    const kind = KINDS.indexOf(move.crashesWithinStep === true ? "crash" : move.kind);
    if (move.kind === "receive" && !isFault(move)) return place * drawn(PACES, 2, move.node, move.from);
    if (isFault(move)) return drawn(FAULTS, 3, kind) * drawn(TARGETS, 4, kind, move.node);
    return place * drawn(PACES, 5, kind);
  };
  return (successors) => {
    const draw = order.bits();
    return best(successors, (at) => {
      const weight = weightOf(successors.moves[at] as Move<V>);
      // Draw an exponential waiting time for each move and pick the move with the lowest one: each move then wins with
      // a probability proportional to its weight.
      return weight === 0
        ? Number.NEGATIVE_INFINITY
        : Math.log((mix(draw, successors.identities[at] as number) + 1) / 2 ** 32) / weight;
    });
  };
}

const KINDS = ["start", "command", "timeout", "crash", "lose", "duplicate", "pause", "resume"];
const PACES = [1 / 64, 1 / 4, 1, 1, 4];
const FAULTS = [0, 0, 1 / 32, 1 / 4, 1];
const TARGETS = [0, 1, 1];

const pickers: { readonly [S in Strategy]: <V extends Vocabulary>(plan: Plan<V>) => Picker<V> } = {
  random: uniform,
  pct,
  swarm,
};

/** Returns the chain that a move belongs to: a link, or a node's own steps. */
const chainOf = (move: { kind: string; node: NodeId; from?: NodeId }): number =>
  move.kind === "receive" ? mix(move.from as NodeId, move.node) : mix(-1, move.node);

/** Returns the index with the highest score. −1 if all scores are −∞. */
function best<V extends Vocabulary>({ count }: Successors<V>, score: (at: number) => number): number {
  let found = -1;
  let highest = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < count; at++) {
    const each = score(at);
    if (each <= highest) continue;
    highest = each;
    found = at;
  }
  return found;
}
