/**
 * Shrinks a violating run until it is small enough to understand: it removes moves as long as the same property is
 * still violated at the end. It first removes large parts (a node, all faults of a kind, all commands), then chunks
 * (delta debugging: Zeller & Hildebrandt, IEEE TSE 2002), single moves, and pairs. Finally, it searches for shorter
 * paths to the violation from every state in the run. The result is a run of the model from its initial state.
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

/** Options of `shrink`. */
export interface ShrinkOptions<V extends Vocabulary> extends ModelOptions<V> {
  /** The maximum number of replays. Once they are used up, the best run so far is returned. Default: 20,000. */
  readonly maxReplays?: number;
  /** Called regularly. Return false to stop and use the best run so far. */
  readonly mayGoOn?: (progress: ShrinkProgress) => boolean;
}

const rules: Rules<ShrinkOptions<Vocabulary> & ExploreOptions<Vocabulary>> = { ...exploreRules, maxReplays: natural };

/** The progress of shrinking. */
export interface ShrinkProgress {
  /** The number of shortened runs tried so far. */
  readonly replays: number;
  /** The length of the best run so far, in moves. */
  readonly length: number;
}

/** A shortened run. */
export interface Shrunk<V extends Vocabulary> extends ShrinkProgress {
  /** The shortened run, from the initial state to the violation. */
  readonly path: readonly Taken<V>[];
  /** The property that the run violates. */
  readonly property: Property<V>;
  /** The length of the original run up to the first violation, counting only moves that the model could follow. */
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

/**
 * Shortens a run that violates a property.
 *
 * @returns null if these moves do not violate the property in the model
 * @example
 * const { property, path } = walk({ ...system, strategy: "random", seed: 1 });
 * const shrunk = property === null ? null : shrink(system, path, property);
 * @throws UsageError if an option is invalid
 */
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
  shrinker.dropChunks(); // In the new order, some moves may have become unnecessary.
  const { replays } = replayer;
  return { path: shrinker.best, property, originalLength: original.length, replays, length: shrinker.best.length };
}

const ASK_EVERY = 1 << 6;
/** The maximum length of a run to try pairs in. Longer runs have too many pairs. */
const MAX_PAIRED = 120;
/** The maximum number of states in each search for a shortcut. */
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

  /** Removes all moves of a node, all faults of a kind, or all commands of a node. */
  dropWholes(): void {
    const nodes = this.#replayer.model.options.nodes;
    for (const node of nodes)
      this.#try((taken) => taken.move.node !== node && !("from" in taken.move && taken.move.from === node));
    for (const kind of ["crash", "lose", "duplicate", "pause"]) this.#try(({ move }) => move.kind !== kind);
    this.#try(({ move }) => move.crashesWithinStep !== true);
    for (const node of nodes) {
      this.#try(({ move }) => move.node !== node || (move.kind !== "crash" && move.kind !== "start"));
      this.#try(({ move }) => move.node !== node || move.kind !== "command");
    }
  }

  /**
   * Removes chunks of half the run, then a quarter, and so on down to single moves, and repeats as long as that helps.
   */
  dropChunks(): void {
    let before: number;
    do {
      before = this.best.length;
      for (let size = this.best.length >> 1; size >= 1; size >>= 1) {
        // Start from the end, where unnecessary moves are found first.
        for (let end = this.best.length; end > 0 && !this.#isStopped; end -= size) {
          const [from, to] = [Math.max(0, end - size), end];
          this.#try((_, at) => at < from || at >= to);
          end = Math.min(end, this.best.length + size);
        }
      }
    } while (this.best.length < before && !this.#isStopped);
  }

  /**
   * Removes moves in pairs, because some make sense only together: a request and its reply, or a crash and its
   * recovery.
   */
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

  /**
   * Takes shortcuts, working from the end to the beginning, because a search that starts late in the run can reach
   * further. Repeats as long as that helps.
   */
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

  /** Reorders moves so that causes and their effects are adjacent, while the run looks the same to every node. */
  order(): void {
    const ordered = this.#replayer.replay(causallyOrdered(this.best));
    if (ordered !== null && ordered.length === this.best.length) this.best = ordered;
  }

  /** Replays only the selected moves. Returns whether the run became shorter. */
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

  /** Reports the progress and checks whether to stop. */
  #note(): void {
    const { replays } = this.#replayer;
    const isAsked = replays % ASK_EVERY === 0;
    this.#isStopped = replays >= this.#maxReplays || (isAsked && !this.#mayGoOn({ replays, length: this.best.length }));
  }
}

/**
 * Returns the moves in an order that preserves each node's order and puts every send before its receipt. Each move is
 * followed by one that it caused, if any, or else by the earliest possible one.
 */
export function causallyOrdered<V extends Vocabulary>(path: readonly Taken<V>[]): Taken<V>[] {
  const causes = causesOf(path);
  const left = new Set(path.keys());
  const order: number[] = [];
  while (left.size > 0) {
    const ready = [...left].filter((at) => (causes[at] as readonly number[]).every((cause) => !left.has(cause)));
    const last = order.at(-1);
    const next = ready.find((at) => last !== undefined && causes[at]?.includes(last)) ?? ready[0];
    if (next === undefined) break; // There is always one, because causes come first.
    left.delete(next);
    order.push(next);
  }
  return order.map((at) => path[at] as Taken<V>);
}

/**
 * Returns, for each move, the indexes of the previous move at its node and of the move that sent the message it
 * receives.
 */
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
