/** The simulator's event loop: takes the next event, runs the node's handler, and queues the effects. */
import { UsageError } from "../core/errors.ts";
import { slotFinder } from "../core/journal-slots.ts";
import { clone } from "../core/plain.ts";
import type {
  CommandOf,
  Deadline,
  Duration,
  EventOf,
  MessageOf,
  NodeId,
  Protocol,
  RecordOf,
  ReplyOf,
  RequestId,
  Slot,
  StateOf,
  TimerOf,
  Vocabulary,
} from "../core/protocol.ts";
import { type Random, random } from "../core/random.ts";
import { dispatch, type Stimulus } from "../core/step.ts";
import { type Copies, copiesOf } from "../driver/copies.ts";
import { requireChoice, unknownReceiver } from "../driver/effect-checks.ts";
import { handlerOf, occasionOf, placed } from "../driver/handler-failure.ts";
import { type Repetitions, repetitionsOf, requirePlainState } from "../driver/repetition.ts";
import { isAwaited, requestFinder, requireFresh } from "../driver/requests.ts";
import type { LossReason, MessageId, TraceEntry } from "../trace/entry.ts";
import { type Histories, historiesOf } from "../trace/histories.ts";
import { differenceOf } from "../trace/standing.ts";
import { drawn, type Sampler, sampler } from "./delay.ts";
import type { Draws } from "./draws.ts";
import { eventQueue, type Pending, PendingPool } from "./event-queue.ts";
import { type Journal, journal } from "./journal.ts";
import { type Network, network } from "./network.ts";
import type { SimulationOptions } from "./options.ts";
import { Population, peersOf } from "./population.ts";
import type { Effects, SimulatedNode } from "./simulated-node.ts";
import { Tally } from "./tally.ts";

/**
 * The state is checked to be plain data after each of this number of initial steps. Later, it is checked only after
 * every `EVERY_STEP`th step, to limit the cost.
 */
const FIRST_STEPS = 500;
const EVERY_STEP = 1_024;

/** The event loop. It is a class because an object's fields are faster to write than a closure's variables. */
export class Kernel<V extends Vocabulary> implements Effects<V> {
  now = 0;
  /** Counts of messages sent to other nodes. Messages from a node to itself are not counted. */
  readonly sent = new Tally();
  /** The number of message copies that did not arrive. */
  lost = 0;
  /** The number of journal records that were not durable when their node crashed. */
  lostRecords = 0;
  inFlight = 0;
  /** Called after each change that can affect a property, between steps. */
  afterChange: (() => void) | null = null;
  readonly histories: Histories<V>;
  readonly population: Population<V>;
  readonly network: Network<V>;

  private readonly trace: ((entry: TraceEntry) => void) | null;
  private readonly queue = eventQueue();
  private readonly pool = new PendingPool<V>();
  private numbered = 0;
  private idMark = "-";
  private armings = 0;
  /** The number of nodes that run each timer. */
  private readonly running = new Map<TimerOf<V>, number>();
  /** A single object used for all receipts. It can be reused because `dispatch` reads it before the handler runs. */
  private readonly receipt: Extract<Stimulus<V>, { kind: "receive" }>;
  private readonly draws: Draws | null;
  private readonly timers: Random;
  private readonly choices: Random;
  private readonly work: Sampler | null;
  private readonly copies: Copies<V>;
  private readonly repetitions: Repetitions<V>;
  private readonly slotOf: (record: RecordOf<V>) => Slot;
  private readonly requestIn: ((command: CommandOf<V>) => RequestId | null) | null;
  /**
   * Whether a message may have several receivers or be retained by a trace listener. If so, each receiver gets a copy.
   */
  private isShared: boolean;
  private steps = 0;
  /** Errors thrown by entry listeners or event listeners rather than by handlers. */
  private readonly thrownOutside = new WeakSet<object>();
  /** The node whose handler is running. */
  stepping: SimulatedNode<V> | null = null;
  /** Crashes a node whose crash was requested during its step. */
  fall: ((node: SimulatedNode<V>) => void) | null = null;

  constructor(
    private readonly protocol: Protocol<V>,
    private readonly options: SimulationOptions<V>,
  ) {
    const { seed, nodes, trace, processingMs = 0 } = options;
    this.draws = options.draws ?? null;
    const stream = (purpose: string): Random => {
      const fresh = random(seed).stream(purpose);
      return this.draws?.over(purpose, fresh) ?? fresh;
    };
    this.trace = trace === undefined ? null : (entry) => this.outside(() => trace(entry as TraceEntry<V>));
    this.copies = copiesOf(protocol);
    this.repetitions = repetitionsOf(protocol);
    this.isShared = this.trace !== null;
    this.slotOf = slotFinder(protocol);
    this.requestIn = requestFinder(protocol);
    this.histories = historiesOf(protocol.properties);
    this.population = new Population(nodes, this, this.histories.empty);
    this.timers = stream("timers");
    this.choices = stream("choices");
    this.receipt = { kind: "receive", from: 0, message: undefined as never };
    const work = sampler(processingMs, stream("processing"), "processingMs");
    this.work = processingMs === 0 ? null : work;
    const chance = { delays: stream("delays"), losses: stream("losses"), duplicates: stream("duplicates") };
    this.network = network(options, chance);
    for (const [index, { from, to, ...model }] of (options.links ?? []).entries())
      this.network.setLink(this.population.node(from), this.population.node(to), model, 0, `links[${index}]`);
  }

  isQuiescent(pendingTimers: readonly TimerOf<V>[]): boolean {
    return this.inFlight === 0 && !pendingTimers.some((timer) => (this.running.get(timer) ?? 0) > 0);
  }

  /**
   * Checks that no step is in progress. Entry listeners and event listeners are called during a step.
   * @throws UsageError if a step is in progress
   */
  requireBetweenSteps(): void {
    if (this.stepping !== null) throw new UsageError("in-step", "expected no change to a simulation during a step");
  }

  /** Adds an entry to the trace, if one is recorded. */
  record(entry: TraceEntry): void {
    this.trace?.(entry);
  }

  /** Records a description of an action on a node or its links. */
  recordFault(node: SimulatedNode<V>, what: () => string): void {
    if (this.trace !== null) this.trace({ at: this.now, node: node.self, kind: "fault", what: what() });
  }

  /** Handles the next event, if it occurs by `untilMs`. Returns false if there is none. */
  step(untilMs: number): boolean {
    const { queue, pool } = this;
    while (queue.next() <= untilMs && queue.size > 0) {
      this.now = queue.next();
      const slot = queue.pop();
      if (this.happen(slot, pool.at(slot))) return true;
    }
    return false;
  }

  /** Whether no more events can occur. Stimuli in a paused node's queue do not count. */
  get isOver(): boolean {
    let isOver = true;
    this.queue.forEach((_at, slot) => {
      isOver &&= this.isStale(this.pool.at(slot));
    });
    return isOver;
  }

  /** Discards the queue of a crashed node. */
  dropWaiting(node: SimulatedNode<V>): void {
    for (const slot of node.waiting ?? []) {
      const { kind, from, id } = this.pool.at(slot);
      if (kind === "arrival") this.lose(from, node.self, id, "crashed");
      this.pool.release(slot);
    }
    node.waiting = null;
  }

  /** Makes a node take the next stimulus from its queue after `afterMs`. */
  occupy(node: SimulatedNode<V>, afterMs: number): void {
    node.isBusy = true;
    this.plan(this.now + afterMs, "turn", node, node.incarnation, node.self, "", null);
  }

  hasWaiting(node: SimulatedNode<V>): boolean {
    return node.waiting !== null && node.waiting.length > 0;
  }

  start(node: SimulatedNode<V>): void {
    this.handle(node, { kind: "start" });
  }

  /** Runs the command now, or once the node is free. */
  command(node: SimulatedNode<V>, given: CommandOf<V>): void {
    const command = this.copies.command(given);
    if (node.isPaused || node.isBusy) this.wait(node, this.pool.take("command", node, 0, node.self, "", command));
    else this.obey(node, command);
  }

  private obey(node: SimulatedNode<V>, command: CommandOf<V>): void {
    const request = this.requestIn?.(command) ?? null;
    if (request !== null) this.open(node, request, command);
    if (this.trace !== null) this.trace({ at: this.now, node: node.self, kind: "command", command });
    this.handle(node, { kind: "command", command: this.copies.command(command) });
  }

  /** Opens a request, which the node must answer. */
  private open(node: SimulatedNode<V>, request: RequestId, command: CommandOf<V>): void {
    node.requests ??= new Map();
    requireFresh(request, node.requests.get(request));
    node.requests.set(request, "open");
    if (node.history.length > 0) node.history = this.histories.requested(node.history, command);
  }

  /** Handles an event. Returns true if anything observable has happened. */
  private happen(slot: number, pending: Pending<V>): boolean {
    const { kind, number, node } = pending;
    if (kind === "arrival") {
      if (number !== node.incarnation || node.state === undefined) {
        this.lose(pending.from, node.self, pending.id, "crashed");
        this.pool.release(slot);
        this.afterChange?.(); // This message may have been the last one in flight.
        return true;
      }
    } else if (kind === "turn") {
      this.pool.release(slot);
      return number === node.incarnation && this.takeTurn(node);
    } else if (this.isStale(pending)) {
      this.pool.release(slot);
      return false;
    }
    if (node.isPaused || node.isBusy) {
      this.wait(node, slot);
      return false;
    }
    this.undergo(slot, pending, node);
    return true;
  }

  /** Whether the timer was canceled or rearmed, or its node has crashed. */
  private isStale({ kind, node, what, number }: Pending<V>): boolean {
    return kind === "timeout" && node.armed?.get(what as TimerOf<V>)?.number !== number;
  }

  private wait(node: SimulatedNode<V>, slot: number): void {
    node.waiting ??= [];
    node.waiting.push(slot);
  }

  private takeTurn(node: SimulatedNode<V>): boolean {
    node.isBusy = false;
    if (node.isPaused) return false;
    for (let slot = node.waiting?.shift(); slot !== undefined; slot = node.waiting?.shift()) {
      const pending = this.pool.at(slot);
      if (this.isStale(pending)) {
        this.pool.release(slot);
        continue;
      }
      this.undergo(slot, pending, node);
      if (!node.isBusy && this.hasWaiting(node)) this.occupy(node, 0);
      return true;
    }
    return false;
  }

  private undergo(slot: number, pending: Pending<V>, node: SimulatedNode<V>): void {
    const { kind, from, id, what } = pending;
    this.pool.release(slot);
    const { trace, now } = this;
    if (kind === "arrival") {
      const message = what as MessageOf<V>;
      this.inFlight -= 1;
      if (trace !== null) trace({ at: now, node: node.self, kind: "receive", id, from, message });
      this.receipt.from = from;
      this.receipt.message = this.isShared ? this.copies.message(message) : message;
      this.handle(node, this.receipt);
    } else if (kind === "timeout") {
      const timer = what as TimerOf<V>;
      this.cancelTimer(node, timer);
      if (trace !== null) trace({ at: now, node: node.self, kind: "timeout", timer });
      this.handle(node, { kind: "timeout", timer });
    } else this.obey(node, what as CommandOf<V>);
  }

  /** Runs the handler for a stimulus at a node that is alive and free. */
  private handle(node: SimulatedNode<V>, stimulus: Stimulus<V>): void {
    this.requireBetweenSteps();
    const { state } = node;
    if (state === undefined) return; // A trace listener crashed the node.
    if (this.work !== null) {
      this.draws?.next(`work ${node.self}`);
      const workMs = this.work();
      node.doneAt = this.now + workMs;
      this.draws?.due(`work ${node.self}`, node.doneAt);
      if (workMs > 0) this.occupy(node, workMs);
    }
    this.stepping = node;
    node.effectCount = 0;
    const repeat = this.repetitions.isDue() ? this.repetitions.beforeRun(node, state, stimulus) : null;
    try {
      this.run(node, state, stimulus);
      repeat?.();
    } finally {
      this.stepping = null;
    }
    if (++this.steps < FIRST_STEPS || this.steps % EVERY_STEP === 0)
      requirePlainState(state, node.self, `after ${handlerOf(stimulus as Stimulus<Vocabulary>)}`);
    if (node.struck !== null) return this.fall?.(node);
    if (this.trace !== null) this.recordView(node, state);
    if (this.afterChange !== null) this.afterChange();
  }

  /**
   * Runs the handler for a stimulus.
   * @throws UsageError or InvariantViolation if the handler throws. The message gives the node, handler, time and seed.
   */
  run(node: SimulatedNode<V>, state: StateOf<V>, stimulus: Stimulus<V>): void {
    try {
      dispatch(this.protocol, state, stimulus, node);
    } catch (error) {
      if (this.thrownOutside.has(error as object)) throw error;
      const occasion = occasionOf(node.self, stimulus as Stimulus<Vocabulary>);
      throw placed(error, `${occasion}, at ${this.now} ms, seed ${this.options.seed}`);
    }
  }

  private outside(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      if (typeof error === "object" && error !== null) this.thrownOutside.add(error);
      throw error;
    }
  }

  private recordView(node: SimulatedNode<V>, state: StateOf<V>): void {
    const shown = this.protocol.view(state, node.self);
    const difference = differenceOf(node.view, shown);
    if (difference === "none" || difference === "log") return; // Decided entries are already reported by events.
    const view = clone(shown); // The view may share data with the state.
    node.view = view;
    const turned = difference === "standing" ? { state: clone(state) } : {};
    this.record({ at: this.now, node: node.self, kind: "view", view, ...turned });
  }

  private lose(from: NodeId, to: NodeId, id: MessageId, why: LossReason): void {
    const crashed = why === "crashed";
    this.lost += 1;
    if (crashed) this.inFlight -= 1;
    if (this.trace !== null) this.trace({ at: this.now, node: crashed ? to : from, kind: "lost", id, to, why });
  }

  // Effects of handlers.

  peers(node: SimulatedNode<V>): readonly NodeId[] {
    return peersOf(this.population.ids, node.place);
  }

  send(from: SimulatedNode<V>, to: NodeId, message: MessageOf<V>): void {
    const receiver = this.population.find(to);
    if (receiver === null) throw unknownReceiver(to, this.population.ids);
    this.post(from, receiver, this.copies.message(message));
  }

  broadcast(from: SimulatedNode<V>, message: MessageOf<V>): void {
    this.sent.broadcasts += 1;
    this.isShared = true;
    const value = this.copies.message(message);
    for (const to of this.population.nodes) if (to !== from) this.post(from, to, value);
  }

  private post(from: SimulatedNode<V>, to: SimulatedNode<V>, message: MessageOf<V>): void {
    if (from.struck !== null) return; // The node crashed within the broadcast.
    from.journal?.sync();
    const { trace } = this;
    let id = "";
    if (trace !== null) {
      id = `${from.self}${this.idMark}${++this.numbered}`;
      trace({ at: this.now, node: from.self, kind: "send", id, to: to.self, message });
    }
    if (from === to) return this.carry(to, from.self, id, message, this.now); // A message to itself needs no network.
    this.sent.count(message);
    const link = this.network.link(from, to);
    this.draws?.next(`link ${from.self} ${to.self}`);
    // Always draw first, so that the loss of a message does not change the delays of other messages.
    const travelMs = link.carrier.travel();
    if (this.network.isCut(link, from, to)) return this.lose(from.self, to.self, id, "cut");
    if (link.carrier.isLost()) return this.lose(from.self, to.self, id, "dropped");
    const leaves = this.work === null ? this.now : Math.max(this.now, from.doneAt);
    this.carry(to, from.self, id, message, link.arrival(message, leaves, travelMs));
    if (!link.carrier.isDuplicated()) return;
    this.isShared = true;
    this.carry(to, from.self, id, message, link.arrival(message, leaves, link.carrier.travelAgain()));
  }

  /** Schedules the arrival of a message. It arrives unless its receiver crashes first. */
  carry(
    to: SimulatedNode<V>,
    from: NodeId,
    id: MessageId,
    message: MessageOf<V>,
    at: number,
    life = to.incarnation,
  ): void {
    this.inFlight += 1;
    this.draws?.due(`message ${id}`, at);
    this.plan(at, "arrival", to, life, from, id, message);
  }

  /** Returns when the last message in flight between two nodes arrives. 0 if no message is in flight. */
  latestArrival(from: SimulatedNode<V>, to: SimulatedNode<V>): number {
    let latest = 0;
    this.queue.forEach((at, slot) => {
      const { kind, node, from: sender } = this.pool.at(slot);
      if (kind === "arrival" && node === to && sender === from.self) latest = Math.max(at, latest);
    });
    return latest;
  }

  setTimer(node: SimulatedNode<V>, timer: TimerOf<V>, duration: Duration): void {
    this.draws?.next(`timer ${node.self} ${timer}`);
    this.arm(node, timer, this.now + drawn(duration, this.timers, timer) / node.rate);
  }

  arm(node: SimulatedNode<V>, timer: TimerOf<V>, at: number): void {
    this.cancelTimer(node, timer);
    const number = ++this.armings;
    node.armed ??= new Map();
    node.armed.set(timer, { number, at });
    this.draws?.due(`timer ${node.self} ${timer}`, at);
    this.running.set(timer, (this.running.get(timer) ?? 0) + 1);
    this.plan(at, "timeout", node, number, node.self, "", timer);
  }

  cancelTimer(node: SimulatedNode<V>, timer: TimerOf<V>): void {
    if (node.armed?.delete(timer)) this.running.set(timer, (this.running.get(timer) ?? 0) - 1);
  }

  persist(node: SimulatedNode<V>, record: RecordOf<V>): void {
    this.journalOf(node).append(this.copies.record(record), this.now + (this.options.syncMs ?? 0));
  }

  compact(node: SimulatedNode<V>, records: readonly RecordOf<V>[]): void {
    this.journalOf(node).compact(records.map(this.copies.record), this.now + (this.options.syncMs ?? 0));
  }

  journalOf(node: SimulatedNode<V>): Journal<RecordOf<V>> {
    node.journal ??= journal(this.slotOf);
    return node.journal;
  }

  emit(node: SimulatedNode<V>, emitted: EventOf<V>, until?: Deadline<V>): void {
    node.journal?.sync(); // An event is emitted only once earlier records are durable.
    const event = clone(emitted);
    if (node.events === null)
      node.events = [event]; // An array literal takes a tenth of the memory that pushing to an empty array takes.
    else node.events.push(event);
    if (node.history.length > 0) node.history = this.histories.after(node.history, event);
    if (this.trace !== null)
      this.trace({ at: this.now, node: node.self, kind: "event", event, ...(until === undefined ? {} : { until }) });
    const { onEvent } = this.options;
    if (onEvent !== undefined) this.outside(() => onEvent(this.now, node.self, event));
  }

  choose<T>(node: SimulatedNode<V>, label: string, options: readonly T[]): T {
    requireChoice(label, options);
    this.draws?.next(`choice ${node.self} ${label}`);
    const option = this.choices.pick(options);
    if (this.trace !== null)
      this.trace({ at: this.now, node: node.self, kind: "choice", label, option: clone(option) });
    return option;
  }

  reply(node: SimulatedNode<V>, request: RequestId, said: ReplyOf<V>): void {
    const reply = this.copies.reply(said);
    if (!isAwaited(request, node.requests?.get(request))) return;
    node.journal?.sync();
    node.requests?.set(request, "answered");
    node.replies = [...(node.replies ?? []), { request, reply }];
    if (node.history.length > 0) node.history = this.histories.replied(node.history, request, reply);
    if (this.trace !== null) this.trace({ at: this.now, node: node.self, kind: "event", event: reply, request });
  }

  // Future events.

  private plan(
    at: number,
    kind: Pending<V>["kind"],
    node: SimulatedNode<V>,
    number: number,
    from: NodeId,
    id: MessageId,
    what: Pending<V>["what"],
  ): void {
    this.queue.push(at, this.pool.take(kind, node, number, from, id, what));
  }

  /** Continues a run. The ids of later messages differ from the ids of that run's messages. */
  continueFrom(at: number, idMark = `@${at}-`): void {
    this.now = at;
    this.idMark = idMark;
  }
}
