/**
 * The names of messages, commands, timers and properties that a scenario may use. The name of a part may be omitted.
 */
import type { Tagged, View } from "../../core/protocol.ts";
import type { ShapeNode } from "../../core/shape.ts";
import { rewrapped, unwrapped } from "../../core/wrapping.ts";
import type { AnyProtocol } from "../../protocols/index.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { deliveredId } from "../../trace/log.ts";
import type { Scenario } from "./schema.ts";

type Kind = "message" | "command";
type Fields = Readonly<Record<string, ShapeNode>>;

/** Returns the declared shapes of a protocol's messages or commands. */
function shapesOf(protocol: AnyProtocol, kind: Kind): Readonly<Record<string, Fields>> {
  return (protocol.shapes as Readonly<Record<Kind, Readonly<Record<string, Fields>> | undefined>>)[kind] ?? {};
}

/** Returns the messages or commands of a part. Null if `Fields` is not a part's wrapper. */
function partVariants({ body, ...rest }: Fields): Fields | null {
  return body?.kind === "variants" && Object.keys(rest).length === 0 ? body.variants : null;
}

/**
 * Returns the types of messages or commands. For the parts of an assembly, and for their own parts, these are the types
 * inside the wrapper.
 */
export function typesOf(protocol: AnyProtocol, kind: Kind): string[] {
  return Object.entries(shapesOf(protocol, kind)).flatMap(([type, fields]) => typesIn(type, fields));
}

function typesIn(type: string, fields: Fields): string[] {
  const variants = partVariants(fields);
  if (variants === null) return [type];
  return Object.entries(variants).flatMap(([inner, shape]) =>
    typesIn(inner, shape.kind === "struct" ? shape.fields : {}),
  );
}

/** Returns the shape of a command, given without the name of the part that handles it. */
export function commandShape(protocol: AnyProtocol, type: string): ShapeNode | null {
  for (const [name, fields] of Object.entries(shapesOf(protocol, "command"))) {
    const variants = partVariants(fields);
    if (name === type) return { kind: "struct", fields };
    if (variants !== null && Object.hasOwn(variants, type)) return variants[type] as ShapeNode;
  }
  return null;
}

/** Wraps a command so that it reaches the part of an assembly that handles it. */
export function addressed(protocol: AnyProtocol, command: Tagged): Tagged {
  const shapes = shapesOf(protocol, "command");
  if (Object.hasOwn(shapes, command.type)) return command;
  const part = Object.entries(shapes).find(([, fields]) => Object.hasOwn(partVariants(fields) ?? {}, command.type));
  return part === undefined ? command : ({ type: part[0], body: command } as Tagged);
}

export function timersOf(protocol: AnyProtocol): string[] {
  return Object.keys((protocol as { timeout?: object }).timeout ?? {});
}

/** Whether `word` names this timer. The name of a part may be omitted. */
export const isTimer = (timer: string, word: string): boolean => timer === word || timer.endsWith(`.${word}`);

/** Whether `word` names this property. The name of a part may be omitted. */
export const isProperty = (property: string, word: string): boolean =>
  property === word || property.endsWith(`: ${word}`);

/** Returns the type of a message or event. For a part of an assembly, this is the type inside the wrapper. */
export const typeOf = (said: Tagged): string => unwrapped(said).type;

/** Replaces the ids of delivered and held-back messages in a trace with the scenario's labels. */
export function labelled(entries: readonly TraceEntry[], { labels }: Scenario): readonly TraceEntry[] {
  if (Object.keys(labels).length === 0) return entries;
  const nameOf = (id: string): string => labels[id] ?? id;
  return entries.map((entry) => {
    if (entry.kind === "view") return { ...entry, view: viewWith(entry.view, nameOf) };
    const id = entry.kind === "event" ? deliveredId(entry.event) : null;
    return entry.kind === "event" && id !== null ? { ...entry, event: withId(entry.event, nameOf(id)) } : entry;
  });
}

const viewWith = (view: View, nameOf: (id: string) => string): View =>
  view.held === undefined ? view : { ...view, held: view.held.map(nameOf) };

/** Replaces an event's id, which may be inside a part's wrapper. */
function withId(event: Tagged, id: string): Tagged {
  return rewrapped(event, { ...unwrapped(event), id });
}
