/**
 * The possible moves in a state. A move's identity depends only on the move itself, not on its position in the model's
 * list. A strategy that uses identities therefore produces the same run for the same seed, regardless of earlier runs.
 * Only the handler of the chosen move runs.
 */
import { hash } from "../../core/plain.ts";
import type { NodeId, Vocabulary } from "../../core/protocol.ts";
import type { Outcome } from "../local-steps.ts";
import type { Model, Move } from "../model.ts";

/** One outcome of a move. There are several if its handler makes choices. */
export interface Way<V extends Vocabulary> {
  readonly tuple: Int32Array;
  readonly outcome: Outcome<V> | null;
}

/** Collects the possible moves in a state, for a random strategy. */
export class Successors<V extends Vocabulary> {
  readonly #model: Model<V>;
  count = 0;
  readonly moves: Move<V>[] = [];
  /** The identities of the moves, 32 bits each. */
  readonly identities: number[] = [];
  /**
   * Whether the run cannot stop here because some move other than a fault or recovery is possible, including moves that
   * bounds cut off.
   */
  isBound = false;
  /** The index of each move in the model's own order. */
  readonly #places: number[] = [];
  #tuple: Int32Array = new Int32Array(0);
  readonly #contents = new WeakMap<object, number>();
  readonly #words = new Map<string, number>();

  constructor(model: Model<V>) {
    this.#model = model;
  }

  /** Lists the moves in a state, which must not change until the next call. */
  gather(tuple: Int32Array): void {
    const model = this.#model;
    this.#tuple = tuple;
    this.count = 0;
    this.isBound = false;
    const wasCut = model.isCut;
    model.isCut = false;
    model.expandWanted(tuple, this.#note, nothing);
    this.isBound ||= model.isCut;
    model.isCut ||= wasCut;
  }

  /** Returns the outcomes of a move. Empty if a bound cuts it off. */
  waysOf(at: number): Way<V>[] {
    const ways: Way<V>[] = [];
    const place = this.#places[at];
    let index = 0;
    const { next } = this.#model;
    this.#model.expandWanted(
      this.#tuple,
      () => index++ === place,
      (_move, outcome) => {
        ways.push({ tuple: next.slice(), outcome });
        return false;
      },
    );
    return ways;
  }

  /** Removes a move from the list. Another move takes its index. */
  drop(at: number): void {
    this.count -= 1;
    for (const column of [this.moves, this.identities, this.#places] as unknown[][]) column[at] = column[this.count];
  }

  readonly #note = (move: Move<V>): boolean => {
    const at = this.count++;
    this.moves[at] = move;
    this.identities[at] = this.#identityOf(move);
    this.#places[at] = at;
    this.isBound ||= !isFault(move) && !(move.kind === "start" && this.#hasCrashed(move.node));
    return false;
  };

  #hasCrashed(node: NodeId): boolean {
    const { options, steps } = this.#model;
    return steps.locals.valueOf(this.#tuple[options.nodes.indexOf(node)] as number).status === "crashed";
  }

  #identityOf(move: Move<V>): number {
    const kind = mix(this.#wordOf(move.crashesWithinStep === true ? `${move.kind}, broken off` : move.kind), move.node);
    const who = move.afterMs === undefined ? kind : mix(kind, move.afterMs);
    if ("message" in move) return mix(mix(who, move.from), this.#contentOf(move.message));
    if ("command" in move) return mix(who, this.#contentOf(move.command));
    return "timer" in move ? mix(who, this.#wordOf(move.timer)) : who;
  }

  /**
   * Returns the hash of a content. The model caches messages and commands, so equal contents are usually the same
   * object and are hashed once.
   */
  #contentOf(content: object): number {
    let known = this.#contents.get(content);
    if (known === undefined) {
      known = hash(content) | 0;
      this.#contents.set(content, known);
    }
    return known;
  }

  #wordOf(word: string): number {
    let known = this.#words.get(word);
    if (known === undefined) {
      known = hash(word) | 0;
      this.#words.set(word, known);
    }
    return known;
  }
}

const nothing = (): boolean => false;

/**
 * Whether a move is a fault: a move that has a budget and is not needed for progress. A recovery counts as progress.
 */
export const isFault = ({ kind, crashesWithinStep = false }: { kind: string; crashesWithinStep?: boolean }): boolean =>
  crashesWithinStep || kind === "crash" || kind === "lose" || kind === "duplicate" || kind === "pause";

/** Returns 32 bits that depend on both numbers (the MurmurHash3 finalizer). */
export function mix(a: number, b: number): number {
  let mixed = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ b;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
