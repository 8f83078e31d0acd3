/**
 * What a search has come to: which handlers ran, and what was emitted. A claim about what never came is no finding, and
 * the reader of a verdict has to see that.
 */
import type { Protocol, Tagged, Vocabulary } from "../core/protocol.ts";
import type { ShapeNode } from "../core/shape.ts";
import type { Stimulus } from "../core/step.ts";
import { pathOf } from "../core/wrapping.ts";
import { handlerOf } from "../driver/handler-failure.ts";

export interface Reach {
  /** In how many different steps an event of each type was emitted; of what a part emits, by the part's name and its own. */
  readonly events: Readonly<Record<string, number>>;
  /** In how many different situations each handler ran. */
  readonly handlers: Readonly<Record<string, number>>;
  /** Handlers that never ran. */
  readonly never: readonly string[];
}

/** Notes what is reached, as it is. */
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

/** What several searches of a protocol have reached together. */
export function reachTogether<V extends Vocabulary>(protocol: Protocol<V>, parts: readonly Reach[]): Reach {
  const [events, handlers] = [new Map<string, number>(), new Map<string, number>()];
  for (const part of parts) {
    for (const [type, times] of Object.entries(part.events)) count(events, type, times);
    for (const [handler, times] of Object.entries(part.handlers)) count(handlers, handler, times);
  }
  return reachOf(protocol, events, handlers);
}

/** Whether something of this type was emitted, be it by a part. */
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

/** Every handler by its name, from the tables, and for parts of assemblies from the shapes. */
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
  // An assembly always has a start, whether or not any of its parts has.
  return protocol.start === undefined || hasParts ? inTables : ["start", ...inTables];
}

/** The types that a part's messages, commands or records have; null where there is no part. */
function insideOf(fields: Readonly<Record<string, ShapeNode>> | undefined): string[] | null {
  return fields?.body?.kind === "variants" ? Object.keys(fields.body.variants) : null;
}
