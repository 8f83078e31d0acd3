/**
 * States that are taken for one, and the one that stands for them: those that differ by how far counters have got, and
 * those that differ by which node is which. Each local state and content is rewritten once and remembered.
 */
import type { MessageOf, NodeId, RecordOf, StateOf, Vocabulary } from "../core/protocol.ts";
import type { Remembered } from "../trace/histories.ts";
import { closedUp, countsIn, lowered, lowestCount, recounted } from "./counters.ts";
import type { Local, LocalSteps } from "./local-steps.ts";
import type { Network } from "./network.ts";

/** What a state, message or record becomes when each node takes the place of another: every id in it is `renamed`. */
export type Rename<V extends Vocabulary> = <T extends StateOf<V> | MessageOf<V> | RecordOf<V>>(
  value: T,
  renamed: (node: NodeId) => NodeId,
) => T;

/** One way to rewrite whatever a global state holds. */
interface Rewriting<V extends Vocabulary> {
  readonly node: (node: NodeId) => NodeId;
  readonly value: <T extends StateOf<V> | MessageOf<V> | RecordOf<V>>(value: T) => T;
  readonly history: (remembered: Remembered) => Remembered;
}

export interface RepresentativesOptions<V extends Vocabulary> {
  readonly steps: LocalSteps<V>;
  readonly network: Network;
  readonly nodes: readonly NodeId[];
  readonly counters: readonly string[];
  readonly rounds: readonly string[];
  /** Whether nodes may crash and start again. */
  readonly mayReturn: boolean;
  readonly symmetry: Rename<V> | null;
}

export class Representatives<V extends Vocabulary> {
  readonly #options: RepresentativesOptions<V>;
  readonly #permutations: readonly (readonly number[])[];
  readonly #permuted: readonly Rewritten<V>[];
  readonly #shifted = new Map<number, Rewritten<V>>();
  readonly #closed = new Map<string, Rewritten<V>>();
  readonly #roundsOfLocal: (readonly number[])[] = [];
  readonly #roundsOfContent: (readonly number[])[] = [];
  readonly #lowestOfLocal: number[] = [];
  readonly #lowestOfContent: number[] = [];
  readonly #candidate: Int32Array;
  readonly #least: Int32Array;

  constructor(options: RepresentativesOptions<V>) {
    this.#options = options;
    const { nodes, symmetry } = options;
    const count = nodes.length;
    this.#permutations = symmetry === null ? [] : permutations(count).slice(1);
    this.#permuted = this.#permutations.map((to) => {
      const node = (of: NodeId): NodeId => nodes[to[nodes.indexOf(of)] as number] as NodeId;
      return new Rewritten(options, {
        node,
        value: (value) => (symmetry as Rename<V>)(value, node),
        history: (same) => same,
      });
    });
    this.#candidate = new Int32Array(2 * count);
    this.#least = new Int32Array(2 * count);
  }

  /** Puts the state that stands for a state in its place. Budgets stay as they are. */
  represent(tuple: Int32Array): void {
    if (this.#options.counters.length > 0) this.#lowerCounters(tuple);
    if (this.#options.rounds.length > 0) this.#closeUp(tuple);
    if (this.#permutations.length > 0) this.#permute(tuple);
  }

  /** The lowest of all counters becomes 0. */
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
      shift = new Rewritten(this.#options, {
        node: (node) => node,
        value: (value) => lowered(value, counters, lowest),
        history: (each) => lowered(each, counters, lowest),
      });
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
      const rewrite = <T>(value: T): T => recounted(value, rounds, (round) => closed.get(round) ?? round);
      rewritten = new Rewritten(this.#options, { node: (node) => node, value: rewrite, history: rewrite });
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
    // A node that starts counts on from its journal: that must not differ between states that are taken for one.
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

  /** The least of all permutations, compared number by number, stands for all of them. */
  #permute(tuple: Int32Array): void {
    const count = this.#options.nodes.length;
    const [least, candidate] = [this.#least, this.#candidate];
    for (let k = 0; k < 2 * count; k++) least[k] = tuple[k] as number;
    for (const [p, to] of this.#permutations.entries()) {
      const rewritten = this.#permuted[p] as Rewritten<V>;
      for (let i = 0; i < count; i++) {
        candidate[to[i] as number] = rewritten.local(tuple[i] as number);
        candidate[count + (to[i] as number)] = rewritten.content(tuple[count + i] as number);
      }
      if (isBelow(candidate, least)) least.set(candidate);
    }
    tuple.set(least);
  }
}

/** Local states and contents as one rewriting leaves them, by number. */
class Rewritten<V extends Vocabulary> {
  readonly #within: Pick<RepresentativesOptions<V>, "steps" | "network">;
  readonly #by: Rewriting<V>;
  readonly #locals: number[] = [];
  readonly #contents: number[] = [];

  constructor(within: Pick<RepresentativesOptions<V>, "steps" | "network">, by: Rewriting<V>) {
    this.#within = within;
    this.#by = by;
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
    const { node, value, history } = this.#by;
    return this.#within.steps.locals.idOf({
      ...local,
      self: node(local.self),
      state: local.state === null ? null : value(local.state),
      journal: local.journal.map((record) => value(record)),
      notifications: local.notifications.map(node).sort((a, b) => a - b),
      history: history(local.history),
    });
  }

  #rewriteContent(id: number): number {
    const { network, steps } = this.#within;
    return network.envelopes(id).reduce((content, { from, message }) => {
      const renamed = steps.messages.idOf(this.#by.value(steps.messages.valueOf(message)));
      return network.add(content, network.envelopeId(this.#by.node(from), renamed));
    }, 0);
  }
}

function isBelow(a: Int32Array, b: Int32Array): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return (a[i] as number) < (b[i] as number);
  return false;
}

/** All orders of 0 … count − 1, the ascending one first. */
function permutations(count: number): number[][] {
  if (count === 0) return [[]];
  const last = count - 1;
  return permutations(last).flatMap((shorter) =>
    Array.from({ length: count }, (_, back) => shorter.toSpliced(last - back, 0, last)),
  );
}
