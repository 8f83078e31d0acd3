/** The options of a check, and the transitions of the whole system that follow from them. */
import type { CommandOf, MessageOf, NodeId, Protocol, StateOf, TimerOf, Vocabulary } from "../core/protocol.ts";
import { LocalSteps, type Outcome } from "./local-steps.ts";
import { type Network, type NetworkKind, network } from "./network.ts";

export interface ModelOptions<V extends Vocabulary> {
  readonly protocol: Protocol<V>;
  readonly nodes: readonly NodeId[];
  readonly network: NetworkKind;
  /**
   * `free`: an armed timer may run out at any time. `synchronous`: only when no message is on its way, which is what
   * bounds on delay with timers above them amount to.
   */
  readonly timers: "free" | "synchronous";
  /** `idle`: every node is up and has not run `start`. `down`: every node starts when it likes. */
  readonly begin: "idle" | "down";
  /** The commands that the application may give in a state. None by default. */
  readonly commands?: (state: StateOf<V>, self: NodeId) => readonly CommandOf<V>[];
  /** Whether a node in that state takes messages; what it does not take waits. Always by default. */
  readonly accepts?: (state: StateOf<V>, self: NodeId) => boolean;
  /** How many crashes, recoveries and lost messages there may be. None by default. */
  readonly crashes?: number;
  readonly recoveries?: number;
  readonly losses?: number;
}

/** One transition, in words that a trace can be made of. */
export type Move<V extends Vocabulary> = { readonly node: NodeId } & (
  | { readonly kind: "receive" | "lose"; readonly from: NodeId; readonly message: MessageOf<V> }
  | { readonly kind: "command"; readonly command: CommandOf<V> }
  | { readonly kind: "timeout"; readonly timer: TimerOf<V> }
  | { readonly kind: "start" | "crash" }
);

/** Takes a successor, which is in `model.next` during the call, and how it came about. True ends the expansion. */
export type Visitor<V extends Vocabulary> = (move: () => Move<V>, outcome: Outcome<V> | null) => boolean;

/** Faults that a state may still suffer: one number of the tuple each, after local states and contents. */
const budgets = ["crashes", "recoveries", "losses"] as const;
type Budget = (typeof budgets)[number];

export class Model<V extends Vocabulary> {
  /** Of a global state: for each node a local state, for each node the content of the way to it, the budgets. */
  readonly width: number;
  /** The successor that is being visited. */
  readonly next: Int32Array;
  readonly steps: LocalSteps<V>;
  readonly network: Network;
  readonly #count: number;
  readonly #hasFaults: boolean;
  /** Per local state, what is asked of it in every transition. */
  readonly #alive: boolean[] = [];
  readonly #accepting: boolean[] = [];

  constructor(readonly options: ModelOptions<V>) {
    const { protocol, nodes, commands = () => [] } = options;
    this.#count = nodes.length;
    this.#hasFaults = budgets.some((budget) => (options[budget] ?? 0) > 0);
    this.width = 2 * this.#count + (this.#hasFaults ? budgets.length : 0);
    this.next = new Int32Array(this.width);
    this.network = network(options.network);
    this.steps = new LocalSteps({ protocol, nodes, network: this.network, commands });
  }

  initial(): Int32Array {
    const { nodes, begin } = this.options;
    const tuple = new Int32Array(this.width);
    for (const [i, node] of nodes.entries())
      tuple[i] = begin === "idle" ? this.steps.idle(node) : this.steps.fresh(node);
    if (this.#hasFaults)
      tuple.set(
        budgets.map((budget) => this.options[budget] ?? 0),
        2 * this.#count,
      );
    return tuple;
  }

  /** Whether no message is on its way. */
  isQuiet(tuple: Int32Array): boolean {
    for (let i = this.#count; i < 2 * this.#count; i++) if (tuple[i] !== 0) return false;
    return true;
  }

  isAlive(local: number): boolean {
    this.#alive[local] ??= this.steps.locals.valueOf(local).status === "up";
    return this.#alive[local];
  }

  /** Calls `visit` with every successor of a state, until it returns true. */
  expand(tuple: Int32Array, visit: Visitor<V>): boolean {
    const timersMay = this.options.timers === "free" || this.isQuiet(tuple);
    for (let i = 0; i < this.#count; i++) {
      const local = tuple[i] as number;
      const ended = this.isAlive(local)
        ? this.#ownSteps(tuple, i, timersMay, visit) ||
          this.#deliveries(tuple, i, visit) ||
          this.#crash(tuple, i, visit)
        : this.#start(tuple, i, visit);
      if (ended || this.#losses(tuple, i, visit)) return true;
    }
    return false;
  }

  #ownSteps(tuple: Int32Array, i: number, timersMay: boolean, visit: Visitor<V>): boolean {
    const content = tuple[this.#count + i] as number;
    for (const { stimulus, outcomes } of this.steps.own(tuple[i] as number)) {
      if (stimulus.kind === "timeout" && !timersMay) continue;
      const move = (): Move<V> => ({ ...stimulus, node: this.#node(i) });
      if (this.#outcomes(tuple, i, content, outcomes, move, visit)) return true;
    }
    return false;
  }

  #deliveries(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    const local = tuple[i] as number;
    if (!this.#accepts(local)) return false;
    for (const { parcel, rest } of this.network.deliveries(tuple[this.#count + i] as number)) {
      const move = (): Move<V> => this.#parcelMove("receive", i, parcel);
      if (this.#outcomes(tuple, i, rest, this.steps.receive(local, parcel), move, visit)) return true;
    }
    return false;
  }

  /** The first start is free; after a crash it is a recovery. */
  #start(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    const local = tuple[i] as number;
    const isFirst = this.steps.locals.valueOf(local).status === "new";
    if (!isFirst && this.#left(tuple, "recoveries") === 0) return false;
    const move = (): Move<V> => ({ kind: "start", node: this.#node(i) });
    return this.#outcomes(tuple, i, 0, this.steps.start(local), move, visit, isFirst ? null : "recoveries");
  }

  /** A crash takes what is on its way to the node with it. */
  #crash(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    if (this.#left(tuple, "crashes") === 0) return false;
    this.next.set(tuple);
    this.next[i] = this.steps.crashed(tuple[i] as number);
    this.next[this.#count + i] = 0;
    this.#spend("crashes");
    return visit(() => ({ kind: "crash", node: this.#node(i) }), null);
  }

  #losses(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    if (this.#left(tuple, "losses") === 0) return false;
    return this.network.deliveries(tuple[this.#count + i] as number).some(({ parcel, rest }) => {
      this.next.set(tuple);
      this.next[this.#count + i] = rest;
      this.#spend("losses");
      return visit(() => this.#parcelMove("lose", i, parcel), null);
    });
  }

  /** Visits the successor of every outcome of one step of node `i`, to which `content` is left to be delivered. */
  #outcomes(
    tuple: Int32Array,
    i: number,
    content: number,
    outcomes: readonly Outcome<V>[],
    move: () => Move<V>,
    visit: Visitor<V>,
    spent: Budget | null = null,
  ): boolean {
    const { next } = this;
    for (const outcome of outcomes) {
      for (let k = 0; k < this.width; k++) next[k] = tuple[k] as number;
      next[i] = outcome.local;
      next[this.#count + i] = content;
      for (const { to, parcel } of outcome.sends) {
        // What is sent to a node that is down is lost.
        if (!this.isAlive(next[to] as number)) continue;
        next[this.#count + to] = this.network.add(next[this.#count + to] as number, parcel);
      }
      if (spent !== null) this.#spend(spent);
      if (visit(move, outcome)) return true;
    }
    return false;
  }

  #accepts(local: number): boolean {
    const { accepts } = this.options;
    if (accepts === undefined) return true;
    const { state, self } = this.steps.locals.valueOf(local);
    this.#accepting[local] ??= accepts(state as StateOf<V>, self);
    return this.#accepting[local];
  }

  #left(tuple: Int32Array, budget: Budget): number {
    return this.#hasFaults ? (tuple[2 * this.#count + budgets.indexOf(budget)] as number) : 0;
  }

  #spend(budget: Budget): void {
    const at = 2 * this.#count + budgets.indexOf(budget);
    this.next[at] = (this.next[at] as number) - 1;
  }

  #parcelMove(kind: "receive" | "lose", i: number, parcel: number): Move<V> {
    const { from, message } = this.network.parcelOf(parcel);
    return { kind, node: this.#node(i), from, message: this.steps.messages.valueOf(message) };
  }

  #node(i: number): NodeId {
    return this.options.nodes[i] as NodeId;
  }
}
