/**
 * The host runs one node of a protocol on a real clock. Each stimulus (a message, an expired timer, a command) is one
 * `dispatch`, which runs to completion. Trace listeners see it as it happens; a trace without listeners costs nothing.
 */
import { EnvironmentError, UsageError } from "../core/errors.ts";
import { slotFinder, slotsOf } from "../core/journal-slots.ts";
import { clone } from "../core/plain.ts";
import type {
  CommandOf,
  Context,
  Deadline,
  Duration,
  EventOf,
  MessageOf,
  NodeId,
  Protocol,
  RecordOf,
  ReplyOf,
  RequestId,
  Signatures,
  StateOf,
  TimerOf,
  View,
  Vocabulary,
} from "../core/protocol.ts";
import { problem, variants } from "../core/shape.ts";
import { dispatch, type Stimulus } from "../core/step.ts";
import { type Copies, copiesOf } from "../driver/copies.ts";
import { requireChoice, requireDuration, unknownReceiver } from "../driver/effect-checks.ts";
import { isAwaited, type RequestStatus, requestFinder, type Unnumbered, withRequest } from "../driver/requests.ts";
import type { MessageId, TraceEntry } from "../trace/entry.ts";
import { SIGNATURE, signatureName, WRONG_SIGNATURE } from "../trace/entry.ts";
import { differenceOf } from "../trace/standing.ts";
import type { HostOptions, Waiting } from "./host-options.ts";
import type { Slot } from "./journal/journal.ts";
import { MAX_WAIT_MS } from "./longest-wait.ts";
import { OpenRequests } from "./open-requests.ts";
import { Outbox } from "./outbox.ts";
import type { Timer } from "./platform/platform.ts";
import type { SendResult } from "./transport/tcp.ts";

/** If a timer is this late, the process was paused. Messages that arrived in the meantime are handled first. */
const LATE_MS = 20;
/** The system clock's resolution is one millisecond. */
const WHOLE_MS = 1;

/**
 * Limits on the journal records included in the trace at startup: their number and their length. A longer journal is
 * left out.
 */
const MAX_TOLD_RECORDS = 1_000;
const MAX_TOLD_LENGTH = 100_000;

/** Limits on the messages that wait for `start`: their number and their total length as JSON. */
const MAX_EARLY = 10_000;
const MAX_EARLY_LENGTH = 4 * 1024 * 1024;

/** Whether the protocol persists records. If so, its node needs a journal slot. */
export const keepsJournal = (protocol: Pick<Protocol<Vocabulary>, "replay" | "slots">): boolean =>
  slotsOf(protocol).length > 0;

const noKeys = (): never => {
  throw new UsageError("no-keys", "expected `signatures` for a protocol that signs messages, got none");
};
const noSignatures: Signatures = { sign: noKeys, isSigned: noKeys };

interface ArmedTimer {
  readonly due: number;
  /** The same time on the system clock, which keeps running while the machine sleeps and can be set. */
  readonly wallDue: number;
  readonly handle: Timer;
}

/**
 * Request ids start at the wall-clock time multiplied by this. They do not repeat after a restart, since no process
 * makes more requests per millisecond than this.
 */
const REQUESTS_PER_MS = 1_000;

/** Runs one node of a protocol. */
export class Host<V extends Vocabulary> {
  readonly #options: HostOptions<V>;
  readonly #peers: NodeId[];
  readonly #state: StateOf<V>;
  readonly #ctx: Context<V>;
  readonly #timers = new Map<TimerOf<V>, ArmedTimer>();
  readonly #outbox: Outbox;
  readonly #commands;
  readonly #copies: Copies<V>;
  readonly #slotOf: (record: RecordOf<V>) => unknown;
  readonly #platform: HostOptions<V>["platform"];
  readonly #startedAt: number;
  /** The sender of the message that is being handled in the current step. */
  #from: NodeId | null = null;
  /** The number of messages that the node has sent to itself. */
  #toSelf = 0;
  #phase: "new" | "running" | "stopped" = "new";
  #early: { from: NodeId; message: MessageOf<V>; id: () => MessageId }[] = [];
  /** The total length of the early messages as JSON. */
  #earlyLength = 0;
  #picture: View | null = null;
  readonly #requestIn: ((command: CommandOf<V>) => RequestId | null) | null;
  /** The callers of open requests. Null for a request whose caller is not waiting. */
  readonly #open: OpenRequests<Waiting<V> | null>;
  /** The events of the current step. The application receives them when the step ends. */
  #events: { event: EventOf<V>; until: number | null }[] = [];

  constructor(options: HostOptions<V>) {
    const { protocol, self, platform } = options;
    this.#platform = platform;
    this.#startedAt = platform.clock.stamp();
    this.#open = new OpenRequests(Math.floor(this.#startedAt) * REQUESTS_PER_MS);
    const slot = options.slot ?? null;
    if (slot === null && keepsJournal(protocol))
      throw new UsageError("no-journal", `expected a journal for ${protocol.name}, which keeps one, got none`);
    this.#outbox = new Outbox(slot, (error) => this.#fail(error));
    this.#peers = [...options.peers].sort((a, b) => a - b);
    this.#options = options;
    this.#state = protocol.init(self, this.#peers);
    this.#commands = variants(protocol.shapes.command ?? {});
    this.#copies = copiesOf(protocol);
    this.#slotOf = slotFinder(protocol);
    this.#requestIn = requestFinder(protocol);
    this.#ctx = this.#context(self, this.#peers);
  }

  /** Adds a peer, for protocols whose members change. The protocol sees it from the next step on. */
  meet(node: NodeId): void {
    if (node === this.#options.self || this.#peers.includes(node)) return;
    this.#peers.push(node);
    this.#peers.sort((a, b) => a - b);
  }

  get view(): View {
    return this.#options.protocol.view(this.#state, this.#options.self);
  }

  /** A copy of the protocol's state. */
  get state(): StateOf<V> {
    return clone(this.#state);
  }

  /** Replays the journal, then starts the protocol. */
  start(): void {
    this.#phase = "running";
    this.#replay(this.#options.slot?.records ?? []);
    this.#step({ kind: "start" });
    const early = this.#early;
    this.#early = [];
    for (const { from, message, id } of early) this.receive(from, message, id);
  }

  /**
   * Takes ownership of the message. Messages received before `start` are queued. Messages received after `stop` are
   * lost, as after a crash.
   */
  receive(from: NodeId, message: MessageOf<V>, id: () => MessageId): void {
    if (this.#phase === "new" && this.#waits(message)) return void this.#early.push({ from, message, id });
    if (this.#phase !== "running") return this.#loseArrived(id);
    if (this.#options.trace.wanted) this.#record({ kind: "receive", id: id(), from, message });
    this.#step({ kind: "receive", from, message });
  }

  /** Whether the queue for early messages has room for the message. */
  #waits(message: MessageOf<V>): boolean {
    if (this.#early.length >= MAX_EARLY || this.#earlyLength > MAX_EARLY_LENGTH) return false;
    this.#earlyLength += JSON.stringify(message).length;
    return this.#earlyLength <= MAX_EARLY_LENGTH;
  }

  /**
   * Runs a command from outside this program.
   * @throws UsageError if the protocol has no such command, or if the node is not running
   */
  command(command: unknown): void {
    this.#requireCommand(command);
    this.carryOut(command as CommandOf<V>);
  }

  /**
   * Runs a command that expects a reply. The host sets its `request` field. Resolves with the reply once the records
   * that the reply depends on are durable. Rejects if the node stops first.
   * @throws UsageError in the same cases as `command`
   */
  request(command: Unnumbered<CommandOf<V>>): Promise<ReplyOf<V>> {
    return new Promise((resolve, reject) => {
      const given = withRequest(command, this.#open.next);
      this.#requireCommand(given);
      this.#give(given as CommandOf<V>, { resolve, reject });
    });
  }

  /**
   * Like `request`, for a command from this program, with callbacks. The node takes ownership of the command.
   * @param numbered returns the command with this request id
   * @throws UsageError in the same cases as `command`
   */
  ask(numbered: (request: RequestId) => CommandOf<V>, waiting: Waiting<V>): void {
    const command = numbered(this.#open.next);
    this.#requireCommand(command);
    this.#take(command, waiting);
  }

  #requireCommand(command: unknown): void {
    if (this.#phase !== "running")
      throw new UsageError("not-running", "expected a running node, but it has not started or has stopped");
    const wrong = problem(this.#commands, command, "command");
    if (wrong !== null) throw new UsageError("bad-command", wrong);
  }

  /** Runs a command from this program, which has already validated it. */
  carryOut(command: CommandOf<V>): void {
    if ((this.#requestIn?.(command) ?? null) === null) this.#give(command);
    else this.#give(withRequest(command, this.#open.next) as CommandOf<V>, null);
  }

  #give(command: CommandOf<V>, waiting?: Waiting<V> | null): void {
    this.#take(this.#copies.command(command), waiting);
  }

  #take(command: CommandOf<V>, waiting?: Waiting<V> | null): void {
    if (waiting !== undefined) this.#open.add(waiting); // `add` assigns the number that the command already contains.
    if (this.#options.trace.wanted) this.#record({ kind: "command", command });
    this.#step({ kind: "command", command });
  }

  /** Returns a snapshot for a new trace listener. */
  snapshot(): TraceEntry<V> {
    return this.#entry({ kind: "view", view: this.view, state: clone(this.#state) });
  }

  /**
   * Returns when the timer expires, on the platform's clock, or null if it is not set. The clock and the timer both
   * stop while the machine sleeps, so the time spent asleep, as measured by the system clock, is subtracted.
   */
  dueAt(timer: TimerOf<V>): number | null {
    const armed = this.#timers.get(timer);
    if (armed === undefined) return null;
    const { clock } = this.#platform;
    const sleptMs = armed.due - clock.now() - (armed.wallDue - clock.wall());
    return sleptMs > WHOLE_MS ? armed.due - sleptMs : armed.due;
  }

  /** Whether all of the node's effects have been performed, so that nothing is waiting for the journal. */
  get isSettled(): boolean {
    return this.#outbox.isClear;
  }

  /**
   * Whether nothing more will happen here without outside input: no timer is running, and nothing is waiting for the
   * journal.
   */
  get isQuiet(): boolean {
    return this.#timers.size === 0 && this.#outbox.isClear;
  }

  stop(): void {
    this.#phase = "stopped";
    this.#early = [];
    this.#outbox.clear();
    for (const timer of this.#timers.keys()) this.#cancel(timer);
    for (const waiting of this.#open.takeAll()) waiting?.reject(stopped());
  }

  #replay(records: readonly RecordOf<V>[]): void {
    this.#record(this.#found(records));
    try {
      for (const record of records)
        dispatch(this.#options.protocol, this.#state, { kind: "replay", record }, this.#ctx);
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #found(records: readonly RecordOf<V>[]): { kind: "start"; journal?: readonly unknown[] } {
    if (!keepsJournal(this.#options.protocol) || !this.#options.trace.wanted) return { kind: "start" };
    const isLong = records.length > MAX_TOLD_RECORDS || JSON.stringify(records).length > MAX_TOLD_LENGTH;
    return isLong ? { kind: "start" } : { kind: "start", journal: records };
  }

  #step(stimulus: Stimulus<V>): void {
    this.#options.beforeStep?.();
    if (this.#phase !== "running") return;
    this.#from = stimulus.kind === "receive" ? stimulus.from : null;
    try {
      dispatch(this.#options.protocol, this.#state, stimulus, this.#ctx);
      if (this.#options.trace.wanted) this.#recordView();
      this.#outbox.settle();
      if (this.#events.length > 0) this.#tellEvents();
      if (this.#phase === "running") this.#options.afterStep?.();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #fail(error: Error): void {
    this.stop();
    this.#options.onFatal(error);
  }

  #tellEvents(): void {
    const events = this.#events;
    this.#events = [];
    for (const { event, until } of events) this.#options.onEvent?.(event, until);
  }

  #loseArrived(id: () => MessageId): void {
    if (this.#options.trace.wanted) this.#record({ kind: "lost", id: id(), to: this.#options.self, why: "crashed" });
  }

  #context(self: NodeId, peers: readonly NodeId[]): Context<V> {
    return {
      self,
      peers,
      send: (to, message) => {
        if (to !== self && !peers.includes(to)) throw unknownReceiver(to, [self, ...peers]);
        if (this.#outbox.isClear) this.#sendNow(to, message);
        else this.#holdMessage(message, (held, at) => this.#sendNow(to, held, at));
      },
      broadcast: (message) => {
        if (this.#outbox.isClear) this.#broadcastNow(peers, message);
        else this.#holdMessage(message, (held, at) => this.#broadcastNow(peers, held, at));
      },
      setTimer: (timer, duration) => this.#arm(timer, duration),
      cancelTimer: (timer) => this.#cancel(timer),
      persist: (record) => this.#journal([record], (slot) => slot.append(record)),
      compact: (records) => this.#journal(records, (slot) => slot.compact(records)),
      emit: (event, until) => this.#emit(event, until),
      reply: (request, reply) => this.#reply(request, reply),
      signatures: this.#signatures(),
      choose: (label, options) => {
        requireChoice(label, options);
        const option = options[
          Math.floor(this.#platform.random.fraction() * options.length)
        ] as (typeof options)[number];
        this.#record({ kind: "choice", label, option });
        return option;
      },
    };
  }

  /**
   * Signs and verifies. Also records in the trace the signatures made here and those found wrong, because a replay
   * cannot recompute other nodes' signatures.
   */
  #signatures(): Signatures {
    const { signatures = noSignatures, onWrongSignature } = this.#options;
    return {
      sign: (signedText) => {
        const signature = signatures.sign(signedText);
        this.#record({ kind: "choice", label: SIGNATURE, option: signature });
        return signature;
      },
      isSigned: (by, signedText, signature) => {
        if (signatures.isSigned(by, signedText, signature)) return true;
        this.#record({ kind: "choice", label: WRONG_SIGNATURE, option: signatureName(by, signedText, signature) });
        onWrongSignature?.(this.#from, by);
        return false;
      },
    };
  }

  #journal(records: readonly RecordOf<V>[], write: (slot: Slot<RecordOf<V>>) => void): void {
    for (const record of records) this.#slotOf(record); // Throws if no handler replays the record.
    write(this.#options.slot as Slot<RecordOf<V>>); // A protocol that persists always has a slot.
    this.#outbox.noteWrite();
  }

  #emit(event: EventOf<V>, deadline: Deadline<V> | undefined): void {
    const { onEvent, isHeard, trace } = this.#options;
    if (trace.wanted) this.#record({ kind: "event", event, ...(deadline === undefined ? {} : { until: deadline }) });
    if (onEvent === undefined || isHeard?.(event) === false) return;
    const until = deadline === undefined ? null : this.dueAt(deadline);
    const own = clone(event); // The event may share data with the state.
    if (this.#outbox.isClear) this.#events.push({ event: own, until });
    else this.#holdEvent(own, until);
  }

  #holdEvent(event: EventOf<V>, until: number | null): void {
    this.#outbox.hold(() => this.#options.onEvent?.(event, until));
  }

  #reply(request: RequestId, said: ReplyOf<V>): void {
    const reply = this.#copies.reply(said);
    if (!isAwaited(request, this.#statusOf(request))) return;
    const waiting = this.#open.take(request);
    if (this.#options.trace.wanted) this.#record({ kind: "event", event: reply, request });
    if (!waiting) return;
    if (this.#outbox.isClear) waiting.resolve(reply);
    else this.#holdReply(waiting, reply);
  }

  #holdReply(waiting: Waiting<V>, reply: ReplyOf<V>): void {
    this.#outbox.hold(
      () => waiting.resolve(reply),
      () => waiting.reject(stopped()),
    );
  }

  #statusOf(request: RequestId): RequestStatus | undefined {
    if (this.#open.has(request)) return "open";
    if (request < this.#open.first) return "past";
    return request < this.#open.next ? "answered" : undefined;
  }

  #holdMessage(message: MessageOf<V>, leave: (held: MessageOf<V>, at: number) => void): void {
    const held = clone(message); // The message may share data with the state, which changes later.
    const at = this.#platform.clock.stamp();
    this.#outbox.hold(() => leave(held, at));
  }

  /** @param at when the handler sent the message, because trace entries are ordered by step */
  #sendNow(to: NodeId, message: MessageOf<V>, at?: number): void {
    const { self, send } = this.#options;
    const result = to === self ? this.#sendToSelf(message) : send(to, message);
    if (this.#options.trace.wanted) this.#recordSent(to, message, result, at);
  }

  /** Sends a message to this node. It bypasses the network and arrives like any other message, in a step of its own. */
  #sendToSelf(message: MessageOf<V>): SendResult {
    const own = this.#copies.message(message);
    this.#toSelf += 1;
    const number = this.#toSelf;
    const id = (): MessageId => `${this.#options.self}-${this.#options.self}@${this.#startedAt}-${number}`;
    this.#platform.timers.soon(() => this.receive(this.#options.self, own, id));
    return { id, lost: null };
  }

  #broadcastNow(peers: readonly NodeId[], message: MessageOf<V>, at?: number): void {
    const { multicast, trace } = this.#options;
    if (multicast === undefined) {
      for (const peer of peers) this.#sendNow(peer, message, at);
      return;
    }
    const resultFor = multicast(message);
    if (!trace.wanted) return;
    for (const peer of peers) this.#recordSent(peer, message, resultFor(peer), at);
  }

  #recordSent(to: NodeId, message: MessageOf<V>, { id, lost }: SendResult, at?: number): void {
    const { trace } = this.#options;
    trace.record(this.#entry({ kind: "send", id: id(), to, message }, at));
    if (lost !== null) trace.record(this.#entry({ kind: "lost", id: id(), to, why: lost }, at));
  }

  #arm(timer: TimerOf<V>, duration: Duration): void {
    requireDuration(timer, duration);
    this.#cancel(timer);
    const [min, max] = typeof duration === "number" ? [duration, duration] : duration;
    const { clock, random } = this.#platform;
    const waitMs = min + random.fraction() * (max - min);
    this.#await(timer, clock.now() + waitMs, clock.wall() + waitMs);
  }

  #await(timer: TimerOf<V>, due: number, wallDue: number): void {
    const { clock, timers } = this.#platform;
    const ready = (): void => {
      const lateMs = clock.now() - due;
      if (lateMs < -LATE_MS) this.#await(timer, due, wallDue);
      else if (lateMs < LATE_MS) this.#fire(timer);
      else this.#timers.set(timer, { due, wallDue, handle: timers.soon(() => this.#fire(timer)) });
    };
    const handle = timers.after(Math.min(due - clock.now(), MAX_WAIT_MS), ready);
    this.#timers.set(timer, { due, wallDue, handle });
  }

  #fire(timer: TimerOf<V>): void {
    this.#timers.delete(timer);
    this.#record({ kind: "timeout", timer });
    this.#step({ kind: "timeout", timer });
  }

  #cancel(timer: TimerOf<V>): void {
    const armed = this.#timers.get(timer);
    if (armed === undefined) return;
    this.#timers.delete(timer);
    this.#platform.timers.cancel(armed.handle);
  }

  #recordView(): void {
    const { view } = this;
    const difference = differenceOf(this.#picture, view);
    if (difference === "none") return;
    this.#picture = view;
    this.#record({ kind: "view", view, ...(difference === "standing" ? { state: clone(this.#state) } : {}) });
  }

  // biome-ignore lint/suspicious/noExplicitAny: the kinds of entries are checked where they are read, in TraceEntry.
  #record(action: any): void {
    if (!this.#options.trace.wanted) return;
    const entry = this.#entry(action);
    if (this.#outbox.isClear) return this.#options.trace.record(entry);
    const held = clone(entry);
    this.#outbox.hold(() => this.#options.trace.record(held));
  }

  #entry(action: object, at = this.#platform.clock.stamp()): TraceEntry<V> {
    return { at, node: this.#options.self, ...action } as TraceEntry<V>;
  }
}

const stopped = (): EnvironmentError => new EnvironmentError("stopped", "the node stopped before it answered");
