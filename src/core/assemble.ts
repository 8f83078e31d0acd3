/**
 * Composition. A node is named parts plus wires: "when this part emits E, give that part command C". An assembly is
 * again a protocol, so every driver runs it like any other.
 */
import { InvariantViolation } from "./errors.ts";
import type {
  CommandOf,
  Context,
  EventOf,
  MessageOf,
  NodeId,
  Property,
  Protocol,
  RecordOf,
  StateOf,
  TimerOf,
  View,
  Vocabulary,
  World,
} from "./protocol.ts";
import { type ShapeNode, variants } from "./shape.ts";

/** Parts by name, each with its type bag. */
export type Parts = Record<string, Vocabulary>;

/** The type bag of an assembly: whatever a part says is wrapped in the part's name. */
export type Assembly<P extends Parts> = {
  state: { [N in keyof P]: StateOf<P[N]> };
  message: Wrapped<P, { [N in keyof P]: MessageOf<P[N]> }>;
  timer: { [N in keyof P & string]: `${N}.${TimerOf<P[N]>}` }[keyof P & string];
  command: Wrapped<P, { [N in keyof P]: CommandOf<P[N]> }>;
  event: Wrapped<P, { [N in keyof P]: EventOf<P[N]> }>;
  record: Wrapped<P, { [N in keyof P]: RecordOf<P[N]> }>;
};
type Wrapped<P extends Parts, Bodies extends { [N in keyof P]: unknown }> = {
  [N in keyof P & string]: [Bodies[N]] extends [never] ? never : { type: N; body: Bodies[N] };
}[keyof P & string];

/** What happens when a part emits: commands to parts, carried out in order once the handler that emitted is done. */
export type Wires<P extends Parts> = {
  readonly [N in keyof P]?: {
    readonly [K in EventOf<P[N]>["type"]]?: (event: Extract<EventOf<P[N]>, { type: K }>, give: Give<P>) => void;
  };
};
export type Give<P extends Parts> = <N extends keyof P & string>(part: N, command: CommandOf<P[N]>) => void;

export interface AssemblyOptions<P extends Parts> {
  /** The part whose view, source, assumptions and costs stand for the whole. */
  readonly face: keyof P & string;
}

// Inside, parts are looked up by name; the types above keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;
type AnyPart = Omit<Protocol<Any>, Table> & Record<Table, Record<string, (...args: unknown[]) => void>>;
type Table = "receive" | "timeout" | "command" | "replay";
interface Given {
  readonly part: string;
  readonly command: { readonly type: string };
}

/** More commands than this in one step mean that wires feed each other for ever. */
const MAX_CASCADE = 1_000;

export function assemble<P extends Parts>(
  name: string,
  parts: { readonly [N in keyof P]: Protocol<P[N]> },
  wires: Wires<P>,
  options: AssemblyOptions<P>,
): Protocol<Assembly<P>> {
  const names = Object.keys(parts);
  const part = (of: string): AnyPart => parts[of] as Any;
  const face = part(options.face);
  const given = new WeakMap<object, Given[]>();
  const contexts = new WeakMap<object, Record<string, Context<Any>>>();

  /** The context of each part within one node's context; made once per node. */
  function inside(ctx: Context<Any>): Record<string, Context<Any>> {
    let found = contexts.get(ctx);
    if (found === undefined) {
      const queue: Given[] = [];
      found = Object.fromEntries(names.map((of) => [of, partContext(of, ctx, queue, wires[of] as Any)]));
      contexts.set(ctx, found);
      given.set(ctx, queue);
    }
    return found;
  }

  /** Runs one handler of one part to its end, then the commands that wires gave meanwhile, in order. */
  function run(states: Any, ctx: Context<Any>, of: string, handle: (state: Any, ctx: Context<Any>) => void): void {
    const within = inside(ctx);
    handle(states[of], within[of] as Context<Any>);
    const queue = given.get(ctx) as Given[];
    for (let done = 0; queue.length > 0; done++) {
      if (done === MAX_CASCADE)
        throw new InvariantViolation("endless-wires", `the wires of ${name} gave over ${MAX_CASCADE} commands in one step`);
      const { part: target, command } = queue.shift() as Given;
      part(target).command[command.type]?.(states[target], command, within[target]);
    }
  }

  const byPart = (table: Table, entry: (of: string) => unknown): Record<string, unknown> =>
    Object.fromEntries(names.filter((of) => Object.keys(part(of)[table] ?? {}).length > 0).map((of) => [of, entry(of)]));
  const shapes = (of: "message" | "command" | "record"): Record<string, { body: ShapeNode }> =>
    Object.fromEntries(
      names
        .filter((each) => Object.keys(part(each).shapes[of] ?? {}).length > 0)
        .map((each) => [each, { body: variants(part(each).shapes[of] as Any) }]),
    );

  return {
    name,
    init: (self: NodeId, peers: readonly NodeId[]) =>
      Object.fromEntries(names.map((of) => [of, part(of).init(self, peers)])),
    start(states: Any, ctx: Context<Any>) {
      for (const of of names) run(states, ctx, of, (state, own) => part(of).start?.(state, own));
    },
    receive: byPart("receive", (of) => (states: Any, from: NodeId, { body }: Any, ctx: Context<Any>) => {
      run(states, ctx, of, (state, own) => part(of).receive[body.type]?.(state, from, body, own));
    }),
    timeout: Object.fromEntries(
      names.flatMap((of) =>
        Object.entries(part(of).timeout ?? {}).map(([timer, handle]) => [
          `${of}.${timer}`,
          (states: Any, ctx: Context<Any>) => run(states, ctx, of, handle),
        ]),
      ),
    ),
    command: byPart("command", (of) => (states: Any, { body }: Any, ctx: Context<Any>) => {
      run(states, ctx, of, (state, own) => part(of).command[body.type]?.(state, body, own));
    }),
    replay: byPart("replay", (of) => (states: Any, { body }: Any) => part(of).replay[body.type]?.(states[of], body)),
    shapes: { message: shapes("message"), command: shapes("command"), record: shapes("record") },
    source: face.source,
    assumes: face.assumes,
    costs: face.costs,
    properties: names.flatMap((of) => part(of).properties.map((property) => lift(of, property))),
    view: (states: Any, self: NodeId): View => face.view(states[options.face], self),
  } as unknown as Protocol<Assembly<P>>;
}

/** A part's context: what it says is wrapped in its name; what it emits also goes along the wires. */
function partContext(
  of: string,
  ctx: Context<Any>,
  queue: Given[],
  wires: Record<string, (event: unknown, give: unknown) => void> | undefined,
): Context<Any> {
  const give = (target: string, command: { type: string }): void => void queue.push({ part: target, command });
  const wrap = (body: unknown): Any => ({ type: of, body });
  return {
    self: ctx.self,
    peers: ctx.peers,
    send: (to, message) => ctx.send(to, wrap(message)),
    broadcast: (message) => ctx.broadcast(wrap(message)),
    setTimer: (timer, duration) => ctx.setTimer(`${of}.${timer}` as never, duration),
    cancelTimer: (timer) => ctx.cancelTimer(`${of}.${timer}` as never),
    persist: (record) => ctx.persist(wrap(record)),
    compact: (record) => ctx.compact(wrap(record)),
    choose: (label, choices) => ctx.choose(`${of}.${label}`, choices),
    emit(event) {
      ctx.emit(wrap(event));
      wires?.[(event as { type: string }).type]?.(event, give);
    },
  };
}

/** A part's property, seen from the whole. */
function lift(of: string, property: Property<Any>): Property<Any> {
  return {
    ...property,
    name: `${of}: ${property.name}`,
    restless: property.restless?.map((timer) => `${of}.${timer}` as never),
    holds: (world: World<Any>) =>
      property.holds({ alive: world.alive, state: (node) => (world.state(node) as Any)[of] as never }),
  } as Property<Any>;
}
