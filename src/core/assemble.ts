/**
 * Composition of protocols. An assembly consists of named parts and the wires between them. A wire turns an event from
 * one part into a command for another. An assembly is itself a protocol, so every driver can run it.
 */
import { InvariantViolation } from "./errors.ts";
import { slotsOf } from "./journal-slots.ts";
import { clone } from "./plain.ts";
import type {
  CommandOf,
  Context,
  EventOf,
  MessageOf,
  NodeId,
  Property,
  Protocol,
  RecordOf,
  ReplyOf,
  RequestId,
  StateOf,
  TimerOf,
  Vocabulary,
} from "./protocol.ts";
import { variants } from "./shape.ts";

/** The type bags of an assembly's parts, keyed by part name. */
export type Parts = Record<string, Vocabulary>;

/**
 * The type bag of an assembly. Each part's messages, commands, events, records and replies are wrapped in the part's
 * name.
 */
export type Assembly<P extends Parts> = {
  state: { [N in keyof P]: StateOf<P[N]> };
  message: Wrapped<P, { [N in keyof P]: MessageOf<P[N]> }>;
  timer: { [N in keyof P & string]: `${N}.${TimerOf<P[N]>}` }[keyof P & string];
  command: Wrapped<P, { [N in keyof P]: CommandOf<P[N]> }>;
  event: Wrapped<P, { [N in keyof P]: EventOf<P[N]> }>;
  record: Wrapped<P, { [N in keyof P]: RecordOf<P[N]> }>;
  reply: Wrapped<P, { [N in keyof P]: ReplyOf<P[N]> }>;
};
type Wrapped<P extends Parts, Bodies extends { [N in keyof P]: unknown }> = {
  [N in keyof P & string]: [Bodies[N]] extends [never] ? never : { type: N; body: Bodies[N] };
}[keyof P & string];

/**
 * For each part, handlers that turn its events into commands for other parts. The commands run in order, once the
 * handler that emitted the event has finished.
 */
export type Wires<P extends Parts> = {
  readonly [N in keyof P]?: {
    readonly [K in EventOf<P[N]>["type"]]?: (event: Extract<EventOf<P[N]>, { type: K }>, give: Give<P>) => void;
  };
};
/** Queues a copy of the command for the given part. */
export type Give<P extends Parts> = <N extends keyof P & string>(part: N, command: CommandOf<P[N]>) => void;

/** Options for `assemble`. */
export interface AssemblyOptions<P extends Parts> {
  /** The part whose view, source, assumptions and costs become the assembly's. */
  readonly face: keyof P & string;
}

// The implementation looks up parts by name and is untyped. The types above check its callers.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;
type Table = "receive" | "timeout" | "command" | "replay";
type AnyPart = Omit<Protocol<Any>, Table | "shapes"> &
  Record<Table, Record<string, (...args: unknown[]) => void>> & { shapes: Record<string, Record<string, Any>> };
type Given = { readonly part: string; readonly command: Any };
/** The contexts of one node's parts, and the commands that wires have queued in the current step. */
type Inside = { readonly contexts: Record<string, Context<Any>>; readonly given: Given[] };

/** The maximum number of commands in one step. If a step exceeds it, its wires are triggering each other endlessly. */
const MAX_CASCADE = 100_000;

/**
 * Combines parts into one protocol that runs them together on every node.
 *
 * @param name the name of the assembly, in kebab-case
 * @param parts the protocols, keyed by part name
 * @param wires the handlers that turn a part's events into commands for other parts
 * @returns the combined protocol. While it runs, it throws InvariantViolation if wires trigger each other endlessly.
 */
export function assemble<P extends Parts>(
  name: string,
  parts: { readonly [N in keyof P]: Protocol<P[N]> },
  wires: Wires<P>,
  options: AssemblyOptions<P>,
): Protocol<Assembly<P>> {
  const names = Object.keys(parts);
  const part = (of: string): AnyPart => parts[of] as Any;
  const face = part(options.face);
  const insides = new WeakMap<object, Inside>();

  /** Returns the contexts of a node's parts. They are cached by `ctx`, because a driver keeps one context per node. */
  function insideOf(ctx: Context<Any>): Inside {
    const known = insides.get(ctx);
    if (known !== undefined) return known;
    const given: Given[] = [];
    const contexts = Object.fromEntries(names.map((of) => [of, partContext(of, ctx, given, wires[of])]));
    insides.set(ctx, { contexts, given });
    return { contexts, given };
  }

  /** Runs one handler of one part, then runs the commands that the wires have queued, in order. */
  function run(states: Any, ctx: Context<Any>, of: string, handle: (state: Any, ctx: Context<Any>) => void): void {
    const { contexts, given } = insideOf(ctx);
    handle(states[of], contexts[of] as Context<Any>);
    for (let done = 0; given.length > 0; done++) {
      if (done === MAX_CASCADE)
        throw new InvariantViolation("endless-wires", `the wires of ${name} trigger each other forever`);
      const { part: target, command } = given.shift() as Given;
      part(target).command[command.type]?.(states[target], command, contexts[target]);
    }
  }

  /** Builds a table with an entry for each part whose table, as returned by `has`, is not empty. */
  const byPart = (has: (of: string) => object | undefined, entry: (of: string) => unknown): Record<string, Any> =>
    Object.fromEntries(names.filter((of) => Object.keys(has(of) ?? {}).length > 0).map((of) => [of, entry(of)]));
  const shapes = (kind: string): object =>
    byPart(
      (of) => part(of).shapes[kind],
      (of) => ({ body: variants(part(of).shapes[kind] as Any) }),
    );
  const timeouts = names.flatMap((of) =>
    Object.entries(part(of).timeout ?? {}).map(([timer, handle]) => [
      `${of}.${timer}`,
      (states: Any, ctx: Context<Any>) => run(states, ctx, of, handle),
    ]),
  );

  return {
    ...face, // Source, assumptions and costs.
    name,
    init: (self: NodeId, peers: readonly NodeId[]) => byPart(part, (of) => part(of).init(self, peers)),
    start(states: Any, ctx: Context<Any>) {
      for (const of of names) run(states, ctx, of, (state, own) => part(of).start?.(state, own));
    },
    receive: byPart(
      (of) => part(of).receive,
      (of) =>
        (states: Any, from: NodeId, { body }: Any, ctx: Context<Any>) =>
          run(states, ctx, of, (state, own) => part(of).receive[body.type]?.(state, from, body, own)),
    ),
    timeout: Object.fromEntries(timeouts),
    command: byPart(
      (of) => part(of).command,
      (of) =>
        (states: Any, { body }: Any, ctx: Context<Any>) =>
          run(states, ctx, of, (state, own) => part(of).command[body.type]?.(state, body, own)),
    ),
    replay: byPart(
      (of) => part(of).replay,
      (of) =>
        (states: Any, { body }: Any) =>
          part(of).replay[body.type]?.(states[of], body),
    ),
    slots: names.flatMap((of) => slotsOf(part(of)).map((slot) => (slot === "" ? of : `${of}.${slot}`))),
    shapes: Object.fromEntries(["message", "command", "record", "reply"].map((kind) => [kind, shapes(kind)])),
    properties: names.flatMap((of) => part(of).properties.map((property) => lift(of, of === options.face, property))),
    view: (states: Any, self: NodeId) => face.view(states[options.face], self),
  } as unknown as Protocol<Assembly<P>>;
}

/** Creates a part's context, which wraps all effects in the part's name and passes emitted events to the wires. */
function partContext(of: string, ctx: Context<Any>, given: Given[], wires: Any): Context<Any> {
  const wrap = (body: unknown): Any => ({ type: of, body });
  return {
    self: ctx.self,
    peers: ctx.peers,
    send: (to, message) => ctx.send(to, wrap(message)),
    broadcast: (message) => ctx.broadcast(wrap(message)),
    setTimer: (timer, duration) => ctx.setTimer(`${of}.${timer}` as never, duration),
    cancelTimer: (timer) => ctx.cancelTimer(`${of}.${timer}` as never),
    persist: (record) => ctx.persist(wrap(record)),
    compact: (records) => ctx.compact(records.map(wrap)),
    choose: (label, choices) => ctx.choose(`${of}.${label}`, choices),
    reply: (request, reply) => ctx.reply(request, wrap(reply) as never),
    signatures: ctx.signatures,
    emit(event: Any, until) {
      ctx.emit(wrap(event), until === undefined ? until : (`${of}.${until}` as never));
      wires?.[event.type]?.(
        event,
        (target: string, command: unknown) => given.push({ part: target, command: clone(command) }), // Parts share no data.
      );
    },
  };
}

/** Rewrites a part's property so that it applies to the assembly's state. Properties of the face keep their names. */
function lift(of: string, isFace: boolean, property: Property<Any>): Property<Any> {
  const inside = ({ alive, nodes, state, history }: Any): Any => ({
    alive,
    nodes,
    state: (node: NodeId) => state(node)[of],
    history,
  });
  const seen = (says: Any) => (world: Any, node: NodeId) => says(inside(world), node);
  const name = isFace ? property.name : `${of}: ${property.name}`;
  const { history } = property;
  const own =
    (heard?: (before: unknown, body: never) => unknown) =>
    (before: unknown, { type, body }: Any) =>
      type === of && heard !== undefined ? heard(before, body as never) : before;
  const remembered = history && {
    history: {
      empty: history.empty,
      after: own(history.after),
      afterRequest: own(history.afterRequest),
      afterReply: (before: unknown, request: RequestId, reply: Any) =>
        own((known, body) => history.afterReply?.(known, request, body) ?? known)(before, reply),
    },
  };
  const lifted = { ...property, ...remembered, name, holds: seen(property.holds) } as Any;
  if (property.when === "leadsTo") return { ...lifted, given: seen(property.given) };
  return { ...lifted, pendingTimers: property.pendingTimers?.map((timer) => `${of}.${timer}`) ?? [] };
}
