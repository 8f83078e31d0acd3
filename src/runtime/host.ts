/**
 * The host: one node of a protocol on a real clock. Each stimulus (a message, a timer that ran out, a command) is one
 * `dispatch`, run to its end; whoever listens to the trace sees it as it happens, and nobody pays for a trace that
 * nobody listens to.
 */
import { InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import { canonical, clone } from "../core/plain.ts";
import type {
  CommandOf,
  Context,
  Duration,
  EventOf,
  MessageOf,
  NodeId,
  Protocol,
  StateOf,
  TimerOf,
  View,
  Vocabulary,
} from "../core/protocol.ts";
import { problem, variants } from "../core/shape.ts";
import { dispatch, type Stimulus } from "../core/step.ts";
import type { MessageId, TraceEntry } from "../trace/entry.ts";
import type { Receipt } from "./transport/tcp.ts";
import { wallClock } from "./wall-clock.ts";

export interface HostOptions<V extends Vocabulary> {
  readonly protocol: Protocol<V>;
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
  readonly send: (to: NodeId, message: MessageOf<V>) => Receipt;
  readonly trace: TraceSink<V>;
  readonly onEvent?: (event: EventOf<V>) => void;
  /** The protocol violated its own invariants. Nothing may go on from here. */
  readonly onFatal: (error: Error) => void;
}

export interface TraceSink<V extends Vocabulary> {
  /** Whether anybody listens. While nobody does, no entry is made. */
  readonly wanted: boolean;
  record(entry: TraceEntry<V>): void;
}

/** A timer this late means that the process stood still: what has arrived meanwhile goes first. */
const LATE_MS = 20;
/** Node fires a timer at once if it is to wait longer than this. */
const MAX_WAIT_MS = 2 ** 31 - 1;

/** How many messages wait for `start` at most. */
const MAX_EARLY = 10_000;

/** @throws UsageError for a protocol that keeps a journal: it may not run on real processes without one. */
export function requireNoJournal(protocol: Pick<Protocol<Vocabulary>, "name" | "replay">): void {
  if (Object.keys(protocol.replay ?? {}).length > 0)
    throw new UsageError(
      "no-journal",
      `expected a protocol without a journal, got ${protocol.name}: real processes have no journal on disk yet`,
    );
}

export class Host<V extends Vocabulary> {
  readonly #options: HostOptions<V>;
  readonly #state: StateOf<V>;
  readonly #ctx: Context<V>;
  readonly #timers = new Map<TimerOf<V>, NodeJS.Timeout | NodeJS.Immediate>();
  readonly #commands;
  #phase: "new" | "running" | "stopped" = "new";
  #early: { from: NodeId; message: MessageOf<V>; id: () => MessageId }[] = [];
  #picture = "";
  /** Events of the step that runs, for the application: it hears of them when the step has ended. */
  #events: EventOf<V>[] = [];

  constructor(options: HostOptions<V>) {
    const { protocol, self } = options;
    requireNoJournal(protocol);
    const peers = [...options.peers].sort((a, b) => a - b);
    this.#options = options;
    this.#state = protocol.init(self, peers);
    this.#commands = variants(protocol.shapes.command ?? {});
    this.#ctx = this.#context(self, peers);
  }

  get view(): View {
    return this.#options.protocol.view(this.#state, this.#options.self);
  }

  start(): void {
    this.#phase = "running";
    this.#record({ kind: "start" });
    this.#step({ kind: "start" });
    const early = this.#early;
    this.#early = [];
    for (const { from, message, id } of early) this.receive(from, message, id);
  }

  /** What arrives before `start` waits for it; what arrives after `stop` is lost, as after a crash. */
  receive(from: NodeId, message: MessageOf<V>, id: () => MessageId): void {
    if (this.#phase === "new" && this.#early.length < MAX_EARLY) return void this.#early.push({ from, message, id });
    if (this.#phase !== "running") return this.#loseArrived(id);
    if (this.#options.trace.wanted) this.#record({ kind: "receive", id: id(), from, message });
    this.#step({ kind: "receive", from, message });
  }

  /** Takes a command from outside. @throws UsageError if it is not one of the protocol's, or the node does not run. */
  command(command: unknown): void {
    if (this.#phase !== "running")
      throw new UsageError("not-running", "expected the node to run, and it has not started yet or has stopped");
    const wrong = problem(this.#commands, command, "command");
    if (wrong !== null) throw new UsageError("bad-command", wrong);
    this.#record({ kind: "command", command: command as CommandOf<V> });
    this.#step({ kind: "command", command: command as CommandOf<V> });
  }

  /** How things stand, for somebody who begins to listen to the trace. */
  snapshot(): TraceEntry<V> {
    return this.#entry({ kind: "view", view: this.view, state: clone(this.#state) });
  }

  stop(): void {
    this.#phase = "stopped";
    this.#early = [];
    for (const timer of this.#timers.keys()) this.#cancel(timer);
  }

  #step(stimulus: Stimulus<V>): void {
    if (this.#phase !== "running") return;
    try {
      dispatch(this.#options.protocol, this.#state, stimulus, this.#ctx);
      if (this.#options.trace.wanted) this.#recordView();
      if (this.#events.length > 0) this.#tellEvents();
    } catch (error) {
      this.stop();
      this.#options.onFatal(error as Error);
    }
  }

  #tellEvents(): void {
    const events = this.#events;
    this.#events = [];
    for (const event of events) this.#options.onEvent?.(event);
  }

  #loseArrived(id: () => MessageId): void {
    if (this.#options.trace.wanted) this.#record({ kind: "lost", id: id(), to: this.#options.self, why: "crashed" });
  }

  #context(self: NodeId, peers: readonly NodeId[]): Context<V> {
    const noJournal = (): never => {
      throw new InvariantViolation(
        "no-journal",
        `${this.#options.protocol.name} persists a record that it has no replay handler for`,
      );
    };
    return {
      self,
      peers,
      send: (to, message) => this.#send(to, message),
      broadcast: (message) => {
        for (const peer of peers) this.#send(peer, message);
      },
      setTimer: (timer, duration) => this.#arm(timer, duration),
      cancelTimer: (timer) => this.#cancel(timer),
      persist: noJournal,
      compact: noJournal,
      emit: (event) => {
        this.#record({ kind: "event", event });
        if (this.#options.onEvent !== undefined) this.#events.push(event);
      },
      choose: (label, options) => {
        if (options.length === 0)
          throw new InvariantViolation(
            "no-choice",
            unexpected(`the choice “${label}”`, "among at least one option", []),
          );
        const option = options[Math.floor(Math.random() * options.length)] as (typeof options)[number];
        this.#record({ kind: "choice", label, option });
        return option;
      },
    };
  }

  #send(to: NodeId, message: MessageOf<V>): void {
    const { id, lost } = this.#options.send(to, message);
    if (!this.#options.trace.wanted) return;
    this.#record({ kind: "send", id: id(), to, message });
    if (lost !== null) this.#record({ kind: "lost", id: id(), to, why: lost });
  }

  #arm(timer: TimerOf<V>, duration: Duration): void {
    this.#cancel(timer);
    const [min, max] = typeof duration === "number" ? [duration, duration] : duration;
    if (!(min >= 0 && min <= max && max < Number.POSITIVE_INFINITY)) {
      const expected = "finite milliseconds of 0 or more, or a range of them, least first";
      const got = typeof duration === "number" ? duration : duration.join(" to ");
      throw new InvariantViolation("bad-timer", unexpected(`the duration of ${timer}`, expected, got));
    }
    this.#await(timer, performance.now() + min + Math.random() * (max - min));
  }

  #await(timer: TimerOf<V>, due: number): void {
    const ready = (): void => {
      const lateMs = performance.now() - due;
      if (lateMs < -LATE_MS) this.#await(timer, due);
      else if (lateMs < LATE_MS) this.#fire(timer);
      else
        this.#timers.set(
          timer,
          setImmediate(() => this.#fire(timer)),
        );
    };
    this.#timers.set(timer, setTimeout(ready, Math.min(due - performance.now(), MAX_WAIT_MS)));
  }

  #fire(timer: TimerOf<V>): void {
    this.#timers.delete(timer);
    this.#record({ kind: "timeout", timer });
    this.#step({ kind: "timeout", timer });
  }

  #cancel(timer: TimerOf<V>): void {
    const handle = this.#timers.get(timer);
    if (handle === undefined) return;
    this.#timers.delete(timer);
    // Whichever of the two it is: clearing the other kind does nothing.
    clearTimeout(handle as NodeJS.Timeout);
    clearImmediate(handle as NodeJS.Immediate);
  }

  #recordView(): void {
    const { view } = this;
    const picture = canonical(view);
    if (picture === this.#picture) return;
    this.#picture = picture;
    this.#record({ kind: "view", view, state: clone(this.#state) });
  }

  // biome-ignore lint/suspicious/noExplicitAny: the kinds of entries are checked where they are read, in TraceEntry.
  #record(action: any): void {
    if (this.#options.trace.wanted) this.#options.trace.record(this.#entry(action));
  }

  #entry(action: object): TraceEntry<V> {
    return { at: wallClock(), node: this.#options.self, ...action } as TraceEntry<V>;
  }
}
