/**
 * What one node can do, by number. A local state is a node's state, its armed timers and its journal; handlers run once
 * per (local state, stimulus) and are remembered, so that exploring is integer work. Only here are states cloned.
 */
import { canonical, clone } from "../core/plain.ts";
import type {
  CommandOf,
  Context,
  EventOf,
  MessageOf,
  NodeId,
  Protocol,
  RecordOf,
  StateOf,
  TimerOf,
  Vocabulary,
} from "../core/protocol.ts";
import { dispatch, type Stimulus } from "../core/step.ts";
import { type Interner, interner } from "./interner.ts";
import type { Network } from "./network.ts";
import { PairTable } from "./pair-table.ts";

export interface Local<V extends Vocabulary> {
  readonly self: NodeId;
  readonly status: "new" | "up" | "crashed";
  /** Null unless the node is up. */
  readonly state: StateOf<V> | null;
  /** Armed, in alphabetical order. */
  readonly timers: readonly TimerOf<V>[];
  readonly journal: readonly RecordOf<V>[];
}

/** One way in which a step can end; several where the handler chooses. */
export interface Outcome<V extends Vocabulary> {
  readonly local: number;
  /** Parcels by the receiver's index among the nodes. */
  readonly sends: readonly { readonly to: number; readonly parcel: number }[];
  readonly events: readonly EventOf<V>[];
}

/** A step that a node can take of its own. */
export interface OwnStep<V extends Vocabulary> {
  readonly stimulus: Stimulus<V> & { kind: "command" | "timeout" };
  readonly outcomes: readonly Outcome<V>[];
}

export interface LocalStepsOptions<V extends Vocabulary> {
  readonly protocol: Protocol<V>;
  readonly nodes: readonly NodeId[];
  readonly network: Network;
  /** The commands that the application may give in a state. */
  readonly commands: (state: StateOf<V>, self: NodeId) => readonly CommandOf<V>[];
}

export class LocalSteps<V extends Vocabulary> {
  readonly locals: Interner<Local<V>> = interner(
    ({ self, status, state, timers, journal }) => `${self} ${status} ${canonical([state, timers, journal])}`,
  );
  readonly messages: Interner<MessageOf<V>> = interner();
  /** How often a handler has run. */
  handlerRuns = 0;
  readonly #receipts = new PairTable();
  readonly #receiptOutcomes: (readonly Outcome<V>[])[] = [];
  readonly #own: (readonly OwnStep<V>[])[] = [];
  readonly #starts: (readonly Outcome<V>[])[] = [];

  constructor(private readonly options: LocalStepsOptions<V>) {}

  /** A node that has not started yet. */
  fresh(self: NodeId): number {
    return this.locals.idOf({ self, status: "new", state: null, timers: [], journal: [] });
  }

  /** A node in its first state that has not run `start`. */
  idle(self: NodeId): number {
    return this.locals.idOf({ self, status: "up", state: this.#init(self), timers: [], journal: [] });
  }

  /** What a crash leaves of a node: its journal. */
  crashed(local: number): number {
    const { self, journal } = this.locals.valueOf(local);
    return this.locals.idOf({ self, status: "crashed", state: null, timers: [], journal });
  }

  /** What receiving a parcel leads to. */
  receive(local: number, parcel: number): readonly Outcome<V>[] {
    const known = this.#receipts.get(local, parcel);
    if (known >= 0) return this.#receiptOutcomes[known] as readonly Outcome<V>[];
    const { from, message } = this.options.network.parcelOf(parcel);
    const stimulus = { kind: "receive" as const, from, message: this.messages.valueOf(message) };
    const outcomes = this.#run(this.locals.valueOf(local), stimulus);
    this.#receipts.add(local, parcel, this.#receiptOutcomes.length);
    this.#receiptOutcomes.push(outcomes);
    return outcomes;
  }

  /** The commands and time-outs that are possible in a local state. */
  own(local: number): readonly OwnStep<V>[] {
    const known = this.#own[local];
    if (known !== undefined) return known;
    const before = this.locals.valueOf(local);
    const { state, self, timers } = before;
    const commands = state === null ? [] : this.options.commands(state, self);
    const stimuli: OwnStep<V>["stimulus"][] = [
      ...commands.map((command) => ({ kind: "command" as const, command })),
      ...timers.map((timer) => ({ kind: "timeout" as const, timer })),
    ];
    const steps = stimuli.map((stimulus) => ({ stimulus, outcomes: this.#run(before, stimulus) }));
    this.#own[local] = steps;
    return steps;
  }

  /** A node that is down starts: its journal is replayed into a first state, then `start` runs. */
  start(local: number): readonly Outcome<V>[] {
    const known = this.#starts[local];
    if (known !== undefined) return known;
    const { self, journal } = this.locals.valueOf(local);
    const state = this.#init(self);
    for (const record of journal)
      dispatch(this.options.protocol, state, { kind: "replay", record }, noEffects as never);
    const outcomes = this.#run({ self, status: "up", state, timers: [], journal }, { kind: "start" });
    this.#starts[local] = outcomes;
    return outcomes;
  }

  #init(self: NodeId): StateOf<V> {
    return this.options.protocol.init(self, this.#peers(self));
  }

  #peers(self: NodeId): NodeId[] {
    return this.options.nodes.filter((node) => node !== self);
  }

  /** Runs a handler once for every way in which its choices can fall. */
  #run(before: Local<V>, stimulus: Stimulus<V>): Outcome<V>[] {
    const outcomes: Outcome<V>[] = [];
    const choices: Choice[] = [];
    for (;;) {
      outcomes.push(this.#runOnce(before, stimulus, choices));
      // The next combination: count up the last choice that has an option left.
      let last = choices.at(-1);
      while (last !== undefined && last.taken === last.of - 1) {
        choices.pop();
        last = choices.at(-1);
      }
      if (last === undefined) return outcomes;
      last.taken += 1;
    }
  }

  #runOnce(before: Local<V>, stimulus: Stimulus<V>, choices: Choice[]): Outcome<V> {
    this.handlerRuns += 1;
    const { protocol, nodes, network } = this.options;
    const { self } = before;
    const state = clone(before.state) as StateOf<V>;
    const timers = new Set(before.timers);
    if (stimulus.kind === "timeout") timers.delete(stimulus.timer);
    let journal = before.journal;
    let asked = 0;
    const sends: { to: number; parcel: number }[] = [];
    const events: EventOf<V>[] = [];
    const send = (to: NodeId, message: MessageOf<V>): void => {
      const parcel = network.parcelId(self, this.messages.idOf(message));
      sends.push({ to: nodes.indexOf(to), parcel });
    };
    const peers = this.#peers(self);
    const ctx: Context<V> = {
      self,
      peers,
      send,
      broadcast: (message) => {
        for (const peer of peers) send(peer, message);
      },
      setTimer: (timer) => void timers.add(timer),
      cancelTimer: (timer) => void timers.delete(timer),
      persist: (record) => {
        journal = [...journal, record];
      },
      compact: (record) => {
        journal = [record];
      },
      emit: (event) => void events.push(event),
      choose: (_label, options) => {
        if (asked === choices.length) choices.push({ taken: 0, of: options.length });
        return options[(choices[asked++] as Choice).taken] as (typeof options)[number];
      },
    };
    dispatch(protocol, state, stimulus, ctx);
    return {
      local: this.locals.idOf({ self, status: "up", state, timers: [...timers].sort(), journal }),
      sends,
      events,
    };
  }
}

/** Which option of a `ctx.choose` is being tried, of how many. */
interface Choice {
  taken: number;
  readonly of: number;
}

/** Replaying changes the state alone. */
const noEffects = {};
