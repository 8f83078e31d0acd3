/**
 * The reach of a search: the handlers that ran and the events that were emitted. A verdict covers only behavior that
 * occurred, so anyone who reads a verdict needs to see the reach too.
 */
import type { Protocol, Tagged, Vocabulary } from "../core/protocol.ts";
import type { ShapeNode } from "../core/shape.ts";
import type { Stimulus } from "../core/step.ts";
import { pathOf } from "../core/wrapping.ts";
import { handlerOf } from "../driver/handler-failure.ts";

/** The handlers that ran and the events that were emitted. */
export interface Reach {
  /**
   * For each type of event, the number of different steps that emitted it. An event of a part is prefixed with the
   * part's name.
   */
  readonly events: Readonly<Record<string, number>>;
  /** For each handler, the number of different situations that it ran in. */
  readonly handlers: Readonly<Record<string, number>>;
  /** Handlers that never ran. */
  readonly never: readonly string[];
}

/** Collects the reach during a search. */
export class Reaching<V extends Vocabulary> {
  readonly #protocol: Protocol<V>;
  readonly #events = new Map<string, number>();
  readonly #handlers = new Map<string, number>();

  constructor(protocol: Protocol<V>) {
    this.#protocol = protocol;
  }

  note(stimulus: Stimulus<V>, events: readonly Tagged[]): void {
    count(this.#handlers, handlerOf(stimulus as Stimulus<Vocabulary>));
    for (const event of events) count(this.#events, pathOf(event).join("."));
  }

  get reach(): Reach {
    return reachOf(this.#protocol, this.#events, this.#handlers);
  }
}

/** Combines the reaches of several searches of a protocol. */
export function reachTogether<V extends Vocabulary>(protocol: Protocol<V>, parts: readonly Reach[]): Reach {
  const [events, handlers] = [new Map<string, number>(), new Map<string, number>()];
  for (const part of parts) {
    for (const [type, times] of Object.entries(part.events)) count(events, type, times);
    for (const [handler, times] of Object.entries(part.handlers)) count(handlers, handler, times);
  }
  return reachOf(protocol, events, handlers);
}

/** Whether an event of this type was emitted, possibly by a part. */
export const isReached = ({ events }: Reach, type: string): boolean =>
  Object.keys(events).some((emitted) => emitted === type || emitted.endsWith(`.${type}`));

function reachOf<V extends Vocabulary>(
  protocol: Protocol<V>,
  events: ReadonlyMap<string, number>,
  handlers: ReadonlyMap<string, number>,
): Reach {
  const never = handlerNames(protocol).filter((handler) => !handlers.has(handler));
  return { events: Object.fromEntries(events), handlers: Object.fromEntries(handlers), never };
}

function count(counts: Map<string, number>, name: string, times = 1): void {
  counts.set(name, (counts.get(name) ?? 0) + times);
}

const tables = ["receive", "timeout", "command", "replay"] as const;
type Table = (typeof tables)[number];
type Tables = { readonly [T in Table]?: object } & {
  readonly start?: unknown;
  readonly shapes: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, ShapeNode>>>>>>;
};

export const handlerNames = <V extends Vocabulary>(protocol: Protocol<V>): string[] => handlersOf(protocol);

/**
 * Returns the names of all handlers. They are taken from the tables or, for the parts of assemblies, from the shapes.
 */
function handlersOf(protocol: Tables): string[] {
  const shapesOf: Readonly<Record<Table, string | null>> = {
    receive: "message",
    timeout: null,
    command: "command",
    replay: "record",
  };
  const hasParts = tables.some((table) =>
    Object.values(protocol.shapes[shapesOf[table] ?? ""] ?? {}).some((fields) => insideOf(fields) !== null),
  );
  const inTables = tables.flatMap((table) =>
    Object.keys(protocol[table] ?? {}).flatMap((name) => {
      const parts = insideOf(protocol.shapes[shapesOf[table] ?? ""]?.[name]);
      if (parts === null) return [`${table} ${name}`];
      return table === "command" ? [] : parts.map((part) => `${table} ${name}.${part}`);
    }),
  );
  // An assembly always has a start, even if none of its parts has one.
  return protocol.start === undefined || hasParts ? inTables : ["start", ...inTables];
}

/** Returns the types of a part's messages, commands or records. Null if the protocol is not an assembly. */
function insideOf(fields: Readonly<Record<string, ShapeNode>> | undefined): string[] | null {
  return fields?.body?.kind === "variants" ? Object.keys(fields.body.variants) : null;
}
