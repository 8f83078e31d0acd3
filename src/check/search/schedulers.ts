/** How a random search picks the next move. Each strategy draws its plan anew for every run, from that run's seed. */
import type { NodeId, Vocabulary } from "../../core/protocol.ts";
import type { Random } from "../../core/random.ts";
import type { ModelOptions, Move } from "../model.ts";
import type { choices } from "../model-options.ts";
import { isFault, mix, type Successors } from "./successors.ts";

export type Strategy = (typeof choices.strategy)[number];

/** One run's way of picking: which successor comes next, or −1 to end the run. */
export type Picker<V extends Vocabulary> = (successors: Successors<V>, step: number) => number;

export interface Plan<V extends Vocabulary> {
  readonly options: ModelOptions<V>;
  readonly chance: Random;
  /** The most steps that the run may take. */
  readonly steps: number;
  /** PCT: how many orderings between events a bug may need; one less changes of priority per run. */
  readonly bugDepth: number;
}

/** Every successor is as likely as every other. */
function uniform<V extends Vocabulary>({ chance }: Plan<V>): Picker<V> {
  const order = chance.stream("order");
  return (successors) => {
    const draw = order.bits();
    return best(successors, (at) => mix(draw, successors.identities[at] as number));
  };
}

/**
 * Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi & Nagarakatte, ASPLOS 2010) for messages: every link
 * and every node's own steps are a chain with a random priority, the chain with the highest goes on, and at `bugDepth` − 1
 * random steps the one that would go on falls below all others. Faults strike at random steps. How long the run is
 * thought to be is drawn too; past that it goes on at random, so that no timer that is always set starves the rest.
 */
function pct<V extends Vocabulary>(plan: Plan<V>): Picker<V> {
  const { options, chance, steps, bugDepth } = plan;
  const draws = chance.stream("plan");
  const horizon = Math.min(steps, Math.round(2 ** draws.between(3, 9)));
  const priorities = draws.bits();
  const changes = new Set(Array.from({ length: bugDepth - 1 }, () => draws.below(horizon)));
  const faultCount = (options.crashes ?? 0) + (options.losses ?? 0) + (options.duplications ?? 0);
  const faults = new Set(Array.from({ length: Math.min(faultCount, horizon) }, () => draws.below(horizon)));
  /** The lowered chains, the lowest last. */
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
      faults.add(step + 1); // Nothing to strike at yet.
    }
    const next = pick(false);
    if (next < 0 || !changes.delete(step)) return next;
    fallen.push(chainOf(successors.moves[next] as Move<V>));
    return pick(false);
  };
}

/**
 * Swarm testing (Groce, Zhang, Eide, Chen & Regehr, ISSTA 2012): every run draws which kinds of faults there are, and
 * which nodes, links, timers and commands are in a hurry or take their time. Runs that lack something go where runs that
 * have everything hardly ever do.
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
      // The lowest of exponential waiting times at these rates: each wins with a probability in proportion to its weight.
      return weight === 0
        ? Number.NEGATIVE_INFINITY
        : Math.log((mix(draw, successors.identities[at] as number) + 1) / 2 ** 32) / weight;
    });
  };
}

const KINDS = ["start", "command", "timeout", "crash", "lose", "duplicate"];
const PACES = [1 / 64, 1 / 4, 1, 1, 4];
const FAULTS = [0, 0, 1 / 32, 1 / 4, 1];
const TARGETS = [0, 1, 1];

export const pickers: { readonly [S in Strategy]: <V extends Vocabulary>(plan: Plan<V>) => Picker<V> } = {
  random: uniform,
  pct,
  swarm,
};

/** A link, or the steps that a node takes of its own. */
const chainOf = (move: { kind: string; node: NodeId; from?: NodeId }): number =>
  move.kind === "receive" ? mix(move.from as NodeId, move.node) : mix(-1, move.node);

/** The index of the highest score; −1 if all are −∞. */
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
