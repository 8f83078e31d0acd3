/**
 * The host: one node of a protocol on a real clock. Each stimulus (a message, a timer that ran out, a command) is one
 * `dispatch`, run to its end; whoever listens to the trace sees it as it happens, and nobody pays for a trace that
 * nobody listens to.
 */
import { InvariantViolation, UsageError } from "../core/errors.ts";
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
import type { MessageId, TraceEntry } from "../core/trace.ts";
import type { Receipt } from "./transport/tcp.ts";

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

export class Host<V extends Vocabulary> {
  readonly #options: HostOptions<V>;
  readonly #state: StateOf<V>;
  readonly #ctx: Context<V>;
  readonly #timers = new Map<TimerOf<V>, NodeJS.Timeout | NodeJS.Immediate>();
  readonly #commands;
  #running = false;
  #picture = "";

  constructor(options: HostOptions<V>) {
    const { protocol, self } = options;
    if (Object.keys(protocol.replay ?? {}).length > 0)
      throw new UsageError("no-journal", `${protocol.name} keeps a journal, and this host has none`);
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
    this.#running = true;
    this.#record({ kind: "start" });
    this.#step({ kind: "start" });
  }

  receive(from: NodeId, message: MessageOf<V>, id: () => MessageId): void {
    if (!this.#running) return;
    if (this.#options.trace.wanted) this.#record({ kind: "receive", id: id(), from, message });
    this.#step({ kind: "receive", from, message });
  }

  /** Takes a command from outside. @throws UsageError if it is not one of the protocol's. */
  command(command: unknown): void {
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
    this.#running = false;
    for (const timer of this.#timers.keys()) this.#cancel(timer);
  }

  #step(stimulus: Stimulus<V>): void {
    if (!this.#running) return;
    try {
      dispatch(this.#options.protocol, this.#state, stimulus, this.#ctx);
      if (this.#options.trace.wanted) this.#recordView();
    } catch (error) {
      this.stop();
      this.#options.onFatal(error as Error);
    }
  }

  #context(self: NodeId, peers: readonly NodeId[]): Context<V> {
    const noJournal = (): never => {
      throw new InvariantViolation("no-journal", `${this.#options.protocol.name} persists a record that it has no replay handler for`);
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
        this.#options.onEvent?.(event);
      },
      choose: (_label, options) => options[Math.floor(Math.random() * options.length)] as (typeof options)[number],
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
    const ms = typeof duration === "number" ? duration : duration[0] + Math.random() * (duration[1] - duration[0]);
    const due = performance.now() + ms;
    const handle = setTimeout(() => {
      if (performance.now() - due < LATE_MS) this.#fire(timer);
      else this.#timers.set(timer, setImmediate(() => this.#fire(timer)));
    }, ms);
    this.#timers.set(timer, handle);
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
    return { at: performance.timeOrigin + performance.now(), node: this.#options.self, ...action } as TraceEntry<V>;
  }
}
