/**
 * A single step of one node. `dispatch` runs the handler in place, as the simulator and the network do. `step` wraps
 * the same handler in a pure function: `(state, stimulus) → { state, effects }`.
 */
import { UsageError } from "./errors.ts";
import { clone } from "./plain.ts";
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
  StateOf,
  TimerOf,
  Vocabulary,
} from "./protocol.ts";
import { idealSignatures } from "./signatures.ts";

/** The input to a step, such as a message or an expired timer. */
export type Stimulus<V extends Vocabulary> =
  /** The first start, or a restart after the journal was replayed. */
  | { kind: "start" }
  /** A message has arrived. */
  | { kind: "receive"; from: NodeId; message: MessageOf<V> }
  /** A timer has expired. */
  | { kind: "timeout"; timer: TimerOf<V> }
  /** The application, or another part of an assembly, has sent a command. */
  | { kind: "command"; command: CommandOf<V> }
  /** A journal record is replayed before a restart. */
  | { kind: "replay"; record: RecordOf<V> };

/** An effect that a handler recorded on `ctx`, as data. Each `kind` is the name of a `Context` method. */
export type Effect<V extends Vocabulary> =
  | { kind: "send"; to: NodeId; message: MessageOf<V> }
  | { kind: "broadcast"; message: MessageOf<V> }
  | { kind: "setTimer"; timer: TimerOf<V>; duration: Duration }
  | { kind: "cancelTimer"; timer: TimerOf<V> }
  | { kind: "persist"; record: RecordOf<V> }
  | { kind: "compact"; records: readonly RecordOf<V>[] }
  | { kind: "emit"; event: EventOf<V>; until?: Deadline<V> }
  | { kind: "reply"; request: RequestId; reply: ReplyOf<V> }
  | { kind: "choose"; label: string; option: unknown };

/** The handler tables as a driver sees them, looked up by name. The types in `Protocol` check the authors' code. */
type Handlers = Readonly<Record<string, (...args: unknown[]) => void>>;
type Tables = {
  readonly name: string;
  start?(state: unknown, ctx: unknown): void;
} & {
  readonly [table in "receive" | "timeout" | "command" | "replay"]?: Handlers;
};

/**
 * Runs the handler for `stimulus` in place. The handler changes `state` and records effects on `ctx`.
 *
 * @throws UsageError if the protocol has no handler for the stimulus
 */
export function dispatch<V extends Vocabulary>(
  protocol: Protocol<V>,
  state: StateOf<V>,
  stimulus: Stimulus<V>,
  ctx: Context<V>,
): void {
  const tables = protocol as unknown as Tables;
  switch (stimulus.kind) {
    case "start":
      return tables.start?.(state, ctx);
    case "receive":
      return handler(tables, "receive", stimulus.message.type)(state, stimulus.from, stimulus.message, ctx);
    case "timeout":
      return handler(tables, "timeout", stimulus.timer)(state, ctx);
    case "command":
      return handler(tables, "command", stimulus.command.type)(state, stimulus.command, ctx);
    case "replay":
      return handler(tables, "replay", stimulus.record.type)(state, stimulus.record);
  }
}

function handler(
  tables: Tables,
  table: Exclude<Stimulus<Vocabulary>["kind"], "start">,
  name: string,
): Handlers[string] {
  const found = tables[table];
  if (found === undefined || !Object.hasOwn(found, name))
    throw new UsageError("no-handler", `${tables.name} has no ${table} handler for "${name}"`);
  return found[name] as Handlers[string];
}

/** Picks one of the options passed to `ctx.choose`. */
export type Chooser = <T>(label: string, options: readonly T[]) => T;

/**
 * Runs one step as a pure function. `state` is not changed.
 *
 * @param choose makes the handler's choices. By default, it picks the first option.
 * @returns the new state, and the effects in the order the handler recorded them
 * @example
 * const protocol = bully();
 * const [node, state] = [{ self: 1, peers: [2, 3] }, protocol.init(1, [2, 3])];
 * const { effects } = step(protocol, node, state, { kind: "command", command: { type: "call" } });
 * @throws UsageError if the protocol has no handler for the stimulus
 */
export function step<V extends Vocabulary>(
  protocol: Protocol<V>,
  node: { readonly self: NodeId; readonly peers: readonly NodeId[] },
  state: StateOf<V>,
  stimulus: Stimulus<V>,
  choose: Chooser = (_label, options) => options[0] as (typeof options)[number],
): { state: StateOf<V>; effects: Effect<V>[] } {
  const next = clone(state);
  const effects: Effect<V>[] = [];
  const record = (effect: Effect<V>): void => void effects.push(effect);
  dispatch(protocol, next, stimulus, {
    self: node.self,
    peers: node.peers,
    send: (to, message) => record({ kind: "send", to, message }),
    broadcast: (message) => record({ kind: "broadcast", message }),
    setTimer: (timer, duration) => record({ kind: "setTimer", timer, duration }),
    cancelTimer: (timer) => record({ kind: "cancelTimer", timer }),
    persist: (entry) => record({ kind: "persist", record: entry }),
    compact: (entries) => record({ kind: "compact", records: entries }),
    emit: (event, until) => record({ kind: "emit", event, ...(until === undefined ? {} : { until }) }),
    reply: (request, reply) => record({ kind: "reply", request, reply }),
    signatures: idealSignatures(node.self),
    choose: (label, options) => {
      const option = choose(label, options);
      record({ kind: "choose", label, option });
      return option;
    },
  });
  return { state: next, effects };
}
