/**
 * Makes a violated run small enough to understand: moves are left out as long as the same property is violated in the
 * end. First what is large (a node, all faults of a kind, all commands), then chunks (delta debugging: Zeller &
 * Hildebrandt, IEEE TSE 2002), single moves, pairs. At last, from every state on the way, other moves are tried that may
 * come to the violation sooner. What is left is a run of the model from its first state.
 */

import { canonical } from "../../core/plain.ts";
import type { NodeId, Property, Vocabulary } from "../../core/protocol.ts";
import {
  isObject,
  natural,
  type Rule,
  type Rules,
  requireOptions,
  requireRule,
} from "../../protocols/known-options.ts";
import { type ExploreOptions, exploreRules } from "../explore.ts";
import type { ModelOptions } from "../model.ts";
import type { Taken } from "../path.ts";
import { Replayer, type Wanted } from "./replay.ts";

export interface ShrinkOptions<V extends Vocabulary> extends ModelOptions<V> {
  /** After so many replays the best so far is the answer. 20,000 by default. */
  readonly maxReplays?: number;
  /** Asked now and then; false ends it with the best so far. */
  readonly mayGoOn?: (progress: ShrinkProgress) => boolean;
}

const rules: Rules<ShrinkOptions<Vocabulary> & ExploreOptions<Vocabulary>> = { ...exploreRules, maxReplays: natural };

export interface ShrinkProgress {
  readonly replays: number;
  /** Of the best run so far, in moves. */
  readonly length: number;
}

export interface Shrunk<V extends Vocabulary> extends ShrinkProgress {
  readonly path: readonly Taken<V>[];
  readonly property: Property<V>;
  /** Of the run that it was made of, as far as the model could follow it, up to the first violation. */
  readonly originalLength: number;
}

const isMove = (taken: unknown): boolean => isObject(taken) && isObject((taken as { move?: unknown }).move);
const moves: Rule = {
  wanted: "the path of an exploration: a list of moves that were taken",
  accepts: (value) => Array.isArray(value) && value.every(isMove),
  isNeeded: true,
};
const violated: Rule = {
  wanted: "the property that the path violates, as in the `property` of an exploration",
  accepts: (value) => isObject(value) && "holds" in value && "when" in value,
  isNeeded: true,
};

/** @returns null where the model, taking these moves, does not violate the property. */
export function shrink<V extends Vocabulary>(
  options: ShrinkOptions<V>,
  path: readonly Wanted<V>[],
  property: Property<V>,
): Shrunk<V> | null {
  requireOptions("shrink", options, rules);
  requireRule("path of shrink()", path, moves);
  requireRule("property of shrink()", property, violated);
  const replayer = new Replayer(options, property);
  const original = replayer.replay(path);
  if (original === null) return null;
  const shrinker = new Shrinker(replayer, original, options);
  shrinker.dropWholes();
  shrinker.dropChunks();
  shrinker.dropPairs();
  shrinker.takeShortcuts();
  shrinker.order();
  shrinker.dropChunks(); // In another order some move may have become needless.
  const { replays } = replayer;
  return { path: shrinker.best, property, originalLength: original.length, replays, length: shrinker.best.length };
}

const ASK_EVERY = 1 << 6;
/** There are so many pairs that beyond this length trying them takes too long. */
const MAX_PAIRED = 120;
/** How many states each search for a shortcut may look at. */
const SHORTCUT_STATES = 5_000;

class Shrinker<V extends Vocabulary> {
  readonly #replayer: Replayer<V>;
  readonly #maxReplays: number;
  readonly #mayGoOn: (progress: ShrinkProgress) => boolean;
  #isStopped = false;

  constructor(
    replayer: Replayer<V>,
    public best: Taken<V>[],
    options: ShrinkOptions<V>,
  ) {
    this.#replayer = replayer;
    this.#maxReplays = options.maxReplays ?? 20_000;
    this.#mayGoOn = options.mayGoOn ?? (() => true);
  }

  /** The activity of a node, the faults of a kind, the commands of a node: all or nothing. */
  dropWholes(): void {
    const nodes = this.#replayer.model.options.nodes;
    for (const node of nodes)
      this.#try((taken) => taken.move.node !== node && !("from" in taken.move && taken.move.from === node));
    for (const kind of ["crash", "lose", "duplicate"]) this.#try(({ move }) => move.kind !== kind);
    this.#try(({ move }) => move.crashesWithinStep !== true);
    for (const node of nodes) {
      this.#try(({ move }) => move.node !== node || (move.kind !== "crash" && move.kind !== "start"));
      this.#try(({ move }) => move.node !== node || move.kind !== "command");
    }
  }

  /** Chunks of half the run, of a quarter, and so on to single moves; again from the beginning while it helps. */
  dropChunks(): void {
    let before: number;
    do {
      before = this.best.length;
      for (let size = this.best.length >> 1; size >= 1; size >>= 1) {
        // From the end, where what does not matter any more is found first.
        for (let end = this.best.length; end > 0 && !this.#isStopped; end -= size) {
          const [from, to] = [Math.max(0, end - size), end];
          this.#try((_, at) => at < from || at >= to);
          end = Math.min(end, this.best.length + size);
        }
      }
    } while (this.best.length < before && !this.#isStopped);
  }

  /** Some moves make sense together only: a request and its reply, a crash and its recovery. */
  dropPairs(): void {
    if (this.best.length > MAX_PAIRED) return;
    for (let late = this.best.length - 1; late > 0 && !this.#isStopped; late--) {
      for (let early = late - 1; early >= 0; early--) {
        if (!this.#try((_, at) => at !== late && at !== early)) continue;
        this.dropChunks();
        return this.dropPairs();
      }
    }
  }

  /** From the end to the beginning, since a search that starts late sees farthest; again while it helps. */
  takeShortcuts(): void {
    for (let kept = this.best.length - 2; kept >= 0 && !this.#isStopped; kept--) {
      const found = this.#replayer.detour(this.best, kept, SHORTCUT_STATES);
      this.#note();
      if (found === null || found.length >= this.best.length) continue;
      this.best = found;
      this.dropPairs();
      return this.takeShortcuts();
    }
  }

  /** Puts next to each other what leads to each other, where that is the same run to everybody who took part. */
  order(): void {
    const ordered = this.#replayer.replay(causallyOrdered(this.best));
    if (ordered !== null && ordered.length === this.best.length) this.best = ordered;
  }

  /** Replays the moves that are to be kept; whether that was shorter. */
  #try(keep: (taken: Taken<V>, at: number) => boolean): boolean {
    if (this.#isStopped) return false;
    const kept = this.best.filter(keep);
    if (kept.length === this.best.length) return false;
    const found = this.#replayer.replay(kept);
    const isShorter = found !== null && found.length < this.best.length;
    if (isShorter) this.best = found;
    this.#note();
    return isShorter;
  }

  /** Whether it is time to end. */
  #note(): void {
    const { replays } = this.#replayer;
    const isAsked = replays % ASK_EVERY === 0;
    this.#isStopped = replays >= this.#maxReplays || (isAsked && !this.#mayGoOn({ replays, length: this.best.length }));
  }
}

/**
 * Another order of the same moves in which every node does what it did in the same order and nothing is received before
 * it was sent: after each move comes one that it has led to, if there is one, or else the earliest that may come.
 */
export function causallyOrdered<V extends Vocabulary>(path: readonly Taken<V>[]): Taken<V>[] {
  const causes = causesOf(path);
  const left = new Set(path.keys());
  const order: number[] = [];
  while (left.size > 0) {
    const ready = [...left].filter((at) => (causes[at] as readonly number[]).every((cause) => !left.has(cause)));
    const last = order.at(-1);
    const next = ready.find((at) => last !== undefined && causes[at]?.includes(last)) ?? ready[0];
    if (next === undefined) break; // There is always one: causes come first.
    left.delete(next);
    order.push(next);
  }
  return order.map((at) => path[at] as Taken<V>);
}

/** For each move the index of the one before it at its node, and of the one that sent what it receives. */
function causesOf<V extends Vocabulary>(path: readonly Taken<V>[]): number[][] {
  const lastOf = new Map<NodeId, number>();
  const onTheirWay: { key: string; at: number }[] = [];
  return path.map(({ move, sends }, at) => {
    const causes: number[] = [];
    const before = lastOf.get(move.node);
    if (before !== undefined) causes.push(before);
    lastOf.set(move.node, at);
    if ("message" in move) {
      const key = canonical([move.from, move.node, move.message]);
      const sent = onTheirWay.findIndex((each) => each.key === key);
      if (sent >= 0) causes.push(onTheirWay[sent]?.at as number);
      if (sent >= 0 && move.kind !== "duplicate") onTheirWay.splice(sent, 1);
    }
    for (const { to, message } of sends) onTheirWay.push({ key: canonical([move.node, to, message]), at });
    return causes;
  });
}
