/**
 * The possible steps of individual nodes, identified by number. A local state consists of a node's state, its armed
 * timers, its journal, and its positions in its command sources. A handler runs once per local state and stimulus, and
 * its result is cached, so exploration handles only integers. States are cloned only here.
 */
import { InvariantViolation, UsageError } from "../core/errors.ts";
import { compacted, slotFinder } from "../core/journal-slots.ts";
import { clone, hash, verbatim } from "../core/plain.ts";
import type {
  CommandOf,
  Context,
  Duration,
  EventOf,
  MessageOf,
  NodeId,
  Protocol,
  RecordOf,
  RequestId,
  Slot,
  StateOf,
  TimerOf,
  Vocabulary,
} from "../core/protocol.ts";
import { random } from "../core/random.ts";
import { idealSignatures } from "../core/signatures.ts";
import { dispatch, type Stimulus } from "../core/step.ts";
import { type Copies, copiesOf } from "../driver/copies.ts";
import { requireChoice, requireDuration, unknownReceiver } from "../driver/effect-checks.ts";
import { handlerOf, occasionOf, placed, requireFewEffects } from "../driver/handler-failure.ts";
import { Repetitions, requirePlainState } from "../driver/repetition.ts";
import {
  type Answer,
  allPast,
  isAwaited,
  type Requests,
  requestFinder,
  requireFresh,
  statusIn,
  withStatus,
} from "../driver/requests.ts";
import type { Histories, Remembered } from "../trace/histories.ts";
import { FailedHandler } from "./failed-move.ts";
import type { Network } from "./network.ts";
import { Reaching } from "./reach.ts";
import { type Interner, interner, PairTable } from "./state-store.ts";

/** The part of a global state that belongs to one node, without the messages in flight. */
export interface Local<V extends Vocabulary> {
  readonly self: NodeId;
  readonly status: "new" | "up" | "crashed";
  /** The state. Null unless the node is up. */
  readonly state: StateOf<V> | null;
  /** The armed timers, in alphabetical order. */
  readonly timers: readonly TimerOf<V>[];
  /** The records in the journal. Empty if the journal will never be read. */
  readonly journal: readonly RecordOf<V>[];
  /** The number of commands that the node has received from its script. */
  readonly commandCount: number;
  /** Crashed nodes whose crash this node has not been notified of, in ascending order. */
  readonly notifications: readonly NodeId[];
  /** The status of its requests. */
  readonly requests: Requests;
  /** The histories that the properties keep for the node. Empty if there are none. */
  readonly history: Remembered;
}

/** One possible outcome of a step. There are several if the handler makes choices. */
export interface Outcome<V extends Vocabulary> {
  readonly local: number;
  /** The envelopes sent, each with its receiver's index among the nodes. */
  readonly sends: readonly { readonly to: number; readonly envelope: number }[];
  readonly events: readonly EventOf<V>[];
  readonly replies: readonly Answer<V>[];
  readonly choices: readonly { readonly label: string; readonly option: unknown }[];
  /** The timer whose timeout the step is. Null for other steps. */
  readonly fired: TimerOf<V> | null;
  /** The timers that the step armed or rearmed, and their durations. */
  readonly armed: ReadonlyMap<TimerOf<V>, Duration>;
  /**
   * The outcomes if the node crashes just before one of these sends. Empty if crashes can happen only between steps.
   */
  readonly crashedWithin: readonly Outcome<V>[];
}

/** The source of a command: the node's script, the application (at any time), or a failure detector. */
export type CommandSource = "script" | "application" | "detector";

/** A step that a node can take without receiving a message. */
export interface OwnStep<V extends Vocabulary> {
  readonly stimulus: Stimulus<V> & { kind: "command" | "timeout" };
  readonly by: CommandSource | "timer";
  /** The crashed node, for a command from a failure detector. Otherwise null. */
  readonly crashed: NodeId | null;
  readonly outcomes: readonly Outcome<V>[];
}

export interface LocalStepsOptions<V extends Vocabulary> {
  readonly protocol: Protocol<V>;
  readonly nodes: readonly NodeId[];
  readonly network: Network;
  /** Whether records matter. They matter only if nodes can recover. */
  readonly keepsJournal: boolean;
  /** Whether crashes can happen within a step. */
  readonly crashesWithinSteps: boolean;
  /** Returns the commands that a node receives in order, each once. */
  readonly asks: (self: NodeId) => readonly CommandOf<V>[];
  /** Returns the commands that the application may give in a state. */
  readonly commands: (state: StateOf<V>, self: NodeId) => readonly CommandOf<V>[];
  /** Returns the command that notifies a node of a crash. */
  readonly crashNotification: (crashed: NodeId) => CommandOf<V> | null;
  readonly histories: Histories<V>;
  /**
   * The maximum number of outcomes of a step. If there are more, this many are drawn at random. If omitted, all are
   * explored.
   */
  readonly maxOutcomes?: number;
}

/** The number of runs of each handler that are stored so that they can be repeated. */
const KEPT_RUNS = 24;

/** The steps of individual nodes. Each is computed once. */
export class LocalSteps<V extends Vocabulary> {
  readonly #options: LocalStepsOptions<V>;
  readonly locals: Interner<Local<V>> = interner(
    ({ self, status, commandCount, state, timers, journal, notifications, requests, history }) =>
      `${self} ${status} ${commandCount} ${requests.join()} ${verbatim([state, timers, journal, notifications, history])}`,
  );
  readonly messages: Interner<MessageOf<V>> = interner();
  readonly reaching: Reaching<V>;
  /** The number of times that a handler has run. */
  handlerRuns = 0;
  readonly #receipts = new PairTable();
  readonly #receiptOutcomes: (readonly Outcome<V>[])[] = [];
  readonly #own: (readonly OwnStep<V>[])[] = [];
  readonly #starts: (readonly Outcome<V>[])[] = [];
  readonly #copies: Copies<V>;
  readonly #slotOf: (record: RecordOf<V>) => Slot;
  readonly #requestIn: ((command: CommandOf<V>) => RequestId | null) | null;
  readonly #repetitions: Repetitions<V>;

  constructor(options: LocalStepsOptions<V>) {
    this.#options = options;
    this.#repetitions = new Repetitions(options.protocol, KEPT_RUNS);
    this.#copies = copiesOf(options.protocol);
    this.#slotOf = slotFinder(options.protocol);
    this.#requestIn = requestFinder(options.protocol);
    this.reaching = new Reaching(options.protocol);
  }

  /**
   * Checks that handlers are deterministic. Call this at the end of a search.
   * @throws InvariantViolation if a handler's result differs when it runs again
   */
  requireRepeatable(): void {
    this.#repetitions.repeatAll();
    const every = Math.ceil(this.locals.size / CHECKED_STATES);
    for (let id = 0; id < this.locals.size; id += every)
      if (!this.locals.isIntact(id)) throw changedLater(this.#options.protocol.name, this.locals.valueOf(id).self);
  }

  /** Returns the local state of a node that has not started. */
  fresh(self: NodeId): number {
    return this.locals.idOf(this.#down(self, "new"));
  }

  /** Returns the local state of a node that is in its initial state and has not run `start`. */
  idle(self: NodeId): number {
    return this.locals.idOf({ ...this.#down(self, "new"), status: "up", state: this.#init(self) });
  }

  /**
   * Returns the local state after a crash. The journal, command positions, requests and the properties' histories are
   * retained.
   */
  crashed(local: number): number {
    const { self, journal, commandCount, requests, history } = this.locals.valueOf(local);
    return this.locals.idOf({
      ...this.#down(self, "crashed"),
      journal,
      commandCount,
      requests: allPast(requests),
      history,
    });
  }

  /** Returns the local state with a pending notification of the node's crash. */
  notified(local: number, crashed: NodeId): number {
    if (this.#options.crashNotification(crashed) === null) return local;
    const before = this.locals.valueOf(local);
    return this.locals.idOf({ ...before, notifications: [...before.notifications, crashed].sort((a, b) => a - b) });
  }

  /** Returns the local state without the pending notification of the node's crash. */
  withdrawn(local: number, crashed: NodeId): number {
    const before = this.locals.valueOf(local);
    if (!before.notifications.includes(crashed)) return local;
    return this.locals.idOf({ ...before, notifications: before.notifications.filter((node) => node !== crashed) });
  }

  /** Returns the outcomes of receiving an envelope. */
  receive(local: number, envelope: number): readonly Outcome<V>[] {
    const known = this.#receipts.get(local, envelope);
    if (known >= 0) return this.#receiptOutcomes[known] as readonly Outcome<V>[];
    const { from, message } = this.#options.network.envelopeOf(envelope);
    const stimulus = { kind: "receive" as const, from, message: this.messages.valueOf(message) };
    const outcomes = this.#run(this.locals.valueOf(local), stimulus);
    this.#receipts.add(local, envelope, this.#receiptOutcomes.length);
    this.#receiptOutcomes.push(outcomes);
    return outcomes;
  }

  /** Returns the commands and timeouts that are possible in a local state. */
  own(local: number): readonly OwnStep<V>[] {
    const known = this.#own[local];
    if (known !== undefined) return known;
    const before = this.locals.valueOf(local);
    const steps = before.state === null ? [] : [...this.#commands(before), ...this.#timeouts(before)];
    this.#own[local] = steps;
    return steps;
  }

  #commands(before: Local<V>): OwnStep<V>[] {
    const { state, self, commandCount, notifications } = before;
    const step = (
      command: CommandOf<V>,
      by: CommandSource,
      from: Local<V>,
      crashed: NodeId | null = null,
    ): OwnStep<V> => this.#later({ kind: "command", command }, by, from, crashed);
    const script = this.#options.asks(self);
    const next = script[commandCount];
    return [
      ...(next === undefined ? [] : [step(next, "script", { ...before, commandCount: commandCount + 1 })]),
      ...this.#options.commands(state as StateOf<V>, self).map((command) => step(command, "application", before)),
      ...notifications.map((crashed) => {
        const rest = notifications.filter((node) => node !== crashed);
        return step(
          this.#options.crashNotification(crashed) as CommandOf<V>,
          "detector",
          { ...before, notifications: rest },
          crashed,
        );
      }),
    ];
  }

  #timeouts(before: Local<V>): OwnStep<V>[] {
    return before.timers.map((timer) => this.#later({ kind: "timeout", timer }, "timer", before));
  }

  /**
   * Returns a step whose handler runs only when its outcomes are first read. If the model does not allow the step, it
   * never runs.
   */
  #later(
    stimulus: OwnStep<V>["stimulus"],
    by: OwnStep<V>["by"],
    from: Local<V>,
    crashed: NodeId | null = null,
  ): OwnStep<V> {
    let known: readonly Outcome<V>[] | null = null;
    const outcomes = (): readonly Outcome<V>[] => {
      known ??= this.#run(from, stimulus);
      return known;
    };
    return {
      stimulus,
      by,
      crashed,
      get outcomes() {
        return outcomes();
      },
    };
  }

  /** Starts a stopped node: its journal is replayed into the initial state, then `start` runs. */
  start(local: number): readonly Outcome<V>[] {
    const known = this.#starts[local];
    if (known !== undefined) return known;
    const { self, journal, commandCount, requests, history } = this.locals.valueOf(local);
    const up = {
      ...this.#down(self, "new"),
      status: "up" as const,
      state: this.replayed(local),
      journal,
      commandCount,
      requests,
      history,
    };
    const outcomes = this.#run(up, { kind: "start" });
    this.#starts[local] = outcomes;
    return outcomes;
  }

  /** Returns the state of a node that starts with this journal. */
  replayed(local: number): StateOf<V> {
    const { self, journal } = this.locals.valueOf(local);
    const state = this.#init(self);
    for (const record of journal) {
      const stimulus = this.#copies.stimulus({ kind: "replay", record });
      this.#dispatch(self, state, stimulus, noEffects as never);
      this.reaching.note(stimulus, []);
    }
    return state;
  }

  #down(self: NodeId, status: "new" | "crashed"): Local<V> {
    const history = this.#options.histories.empty;
    const nothing = { state: null, timers: [], journal: [], commandCount: 0, notifications: [], requests: [] };
    return { self, status, ...nothing, history };
  }

  #init(self: NodeId): StateOf<V> {
    const state = this.#options.protocol.init(self, this.#peers(self));
    requirePlainState(state, self, "after init");
    return state;
  }

  #peers(self: NodeId): NodeId[] {
    return this.#options.nodes.filter((node) => node !== self);
  }

  /** Runs a handler once for every combination of its choices, or for a random sample of the combinations. */
  #run(before: Local<V>, stimulus: Stimulus<V>): Outcome<V>[] {
    const { maxOutcomes = Number.POSITIVE_INFINITY } = this.#options;
    const outcomes: Outcome<V>[] = [];
    const choices: Choice[] = [];
    for (;;) {
      if (outcomes.length === maxOutcomes) return this.#drawn(maxOutcomes, before, stimulus);
      outcomes.push(this.#runOnce(before, stimulus, choices));
      if (outcomes.length === 1)
        this.#repetitions.note(before.self, this.#peers(before.self), before.state as StateOf<V>, stimulus);
      // To find the next combination, advance the last choice that still has an untried option.
      let last = choices.at(-1);
      while (last !== undefined && last.taken === last.of - 1) {
        choices.pop();
        last = choices.at(-1);
      }
      if (last === undefined) return outcomes;
      last.taken += 1;
    }
  }

  #dispatch(self: NodeId, state: StateOf<V>, stimulus: Stimulus<V>, ctx: Context<V>): void {
    try {
      dispatch(this.#options.protocol, state, stimulus, ctx);
    } catch (error) {
      const of = stimulus as Stimulus<Vocabulary>;
      // The caller has to fix a missing handler or a value that is not plain data.
      if (error instanceof UsageError) throw placed(error, occasionOf(self, of));
      throw new FailedHandler({ node: self, handler: handlerOf(of), error });
    }
  }

  #idOf(local: Local<V>, stimulus: Stimulus<V>): number {
    try {
      return this.locals.idOf(local);
    } catch (error) {
      requirePlainState(local.state, local.self, `after ${handlerOf(stimulus as Stimulus<Vocabulary>)}`);
      throw error;
    }
  }

  /**
   * Draws outcomes at random. The seed is derived from the step itself, so the outcomes do not depend on the search so
   * far.
   */
  #drawn(count: number, before: Local<V>, stimulus: Stimulus<V>): Outcome<V>[] {
    const chance = random(hash([before.self, before.commandCount, before.state, before.timers, stimulus]));
    return Array.from({ length: count }, () => this.#runOnce(before, stimulus, [], (of) => chance.below(of)));
  }

  /** Runs a handler once. @param first the options to use for the first choices */
  #runOnce(
    before: Local<V>,
    stimulus: Stimulus<V>,
    choices: Choice[],
    first: (of: number) => number = () => 0,
  ): Outcome<V> {
    this.handlerRuns += 1;
    const { nodes, network, keepsJournal, crashesWithinSteps, histories } = this.#options;
    const { self, commandCount } = before;
    const copies = this.#copies;
    const state = clone(before.state) as StateOf<V>;
    const timers = new Set(before.timers);
    if (stimulus.kind === "timeout") timers.delete(stimulus.timer);
    let { journal, requests, history } = before;
    let effects = 0;
    const count = (): void => requireFewEffects(++effects);
    const request = stimulus.kind === "command" ? (this.#requestIn?.(stimulus.command) ?? null) : null;
    if (stimulus.kind === "command" && request !== null) {
      requireFresh(request, statusIn(requests, request));
      requests = withStatus(requests, request, "open");
      history = histories.requested(history, stimulus.command);
    }
    const chosen: { label: string; option: unknown }[] = [];
    const armed = new Map<TimerOf<V>, Duration>();
    const sends: { to: number; envelope: number }[] = [];
    const events: EventOf<V>[] = [];
    const replies: Answer<V>[] = [];
    const crashedWithin: Outcome<V>[] = [];
    const crashHere = (): void => {
      const kept = { journal, commandCount, requests: allPast(requests), history };
      const local = this.locals.idOf({ ...this.#down(self, "crashed"), ...kept });
      const done = { sends: [...sends], events: [...events], replies: [...replies], choices: [...chosen] };
      crashedWithin.push({ local, ...done, fired: null, armed: new Map(), crashedWithin: [] });
    };
    const send = (to: NodeId, message: MessageOf<V>): void => {
      count();
      const place = nodes.indexOf(to);
      if (place < 0) throw unknownReceiver(to, nodes);
      if (crashesWithinSteps) crashHere();
      sends.push({ to: place, envelope: network.envelopeId(self, this.messages.idOf(copies.message(message))) });
    };
    const peers = this.#peers(self);
    const ctx: Context<V> = {
      self,
      peers,
      send,
      broadcast: (message) => {
        for (const peer of peers) send(peer, message);
      },
      setTimer: (timer, duration) => {
        count();
        requireDuration(timer, duration);
        timers.add(timer);
        armed.set(timer, duration);
      },
      cancelTimer: (timer) => {
        count();
        timers.delete(timer);
      },
      persist: (record) => {
        count();
        this.#slotOf(record);
        if (keepsJournal) journal = [...journal, copies.record(record)];
      },
      compact: (records) => {
        count();
        const kept = compacted(journal, records.map(copies.record), this.#slotOf);
        if (keepsJournal) journal = kept;
      },
      emit: (event) => {
        count();
        const said = clone(event);
        events.push(said);
        history = histories.after(history, said);
      },
      reply: (id, said) => {
        count();
        const reply = copies.reply(said);
        if (!isAwaited(id, statusIn(requests, id))) return;
        requests = withStatus(requests, id, "answered");
        replies.push({ request: id, reply });
        history = histories.replied(history, id, reply);
      },
      signatures: idealSignatures(self),
      choose: (label, options) => {
        count();
        requireChoice(label, options);
        if (chosen.length === choices.length) choices.push({ taken: first(options.length), of: options.length });
        const option = options[(choices[chosen.length] as Choice).taken] as (typeof options)[number];
        chosen.push({ label, option: clone(option) });
        return option;
      },
    };
    this.#dispatch(self, state, copies.stimulus(stimulus), ctx);
    this.reaching.note(stimulus, events);
    const after = { ...before, state, timers: [...timers].sort(), journal, requests, history };
    return {
      local: this.#idOf(after, stimulus),
      sends,
      events,
      replies,
      choices: chosen,
      fired: stimulus.kind === "timeout" ? stimulus.timer : null,
      armed,
      crashedWithin,
    };
  }
}

/** The approximate number of local states that are compared with the values that they had when they were found. */
const CHECKED_STATES = 1_000;

const changedLater = (protocol: string, node: NodeId): InvariantViolation =>
  new InvariantViolation(
    "state-changed",
    `expected the states of ${protocol} to be changed only by the handler that receives them, but a state of node ${node} was ` +
      "changed later: keep no reference to a state outside the handler, and do not change one in properties, view or commands",
  );

/** A call to `ctx.choose`: the option to try, and the number of options. */
interface Choice {
  taken: number;
  readonly of: number;
}

/** Effects for a replay, which changes only the state. */
const noEffects = {};
