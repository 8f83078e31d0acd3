/** The names that a scenario may use of a protocol: messages, commands, timers, properties. A part need not be named. */
import type { Tagged, View } from "../../core/protocol.ts";
import type { ShapeNode } from "../../core/shape.ts";
import { rewrapped, unwrapped } from "../../core/wrapping.ts";
import type { AnyProtocol } from "../../protocols/index.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { deliveredId } from "../../trace/log.ts";
import type { Scenario } from "./schema.ts";

type Kind = "message" | "command";
type Fields = Readonly<Record<string, ShapeNode>>;

/** What a protocol says of each of its messages or commands. */
function shapesOf(protocol: AnyProtocol, kind: Kind): Readonly<Record<string, Fields>> {
  return (protocol.shapes as Readonly<Record<Kind, Readonly<Record<string, Fields>> | undefined>>)[kind] ?? {};
}

/** The variants that a part's messages or commands have; null for what is no part. */
function partVariants({ body, ...rest }: Fields): Fields | null {
  return body?.kind === "variants" && Object.keys(rest).length === 0 ? body.variants : null;
}

/** The types that count: of the messages themselves, or of those that an assembly's parts send, and parts of parts. */
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

/** The shape of a command that is written without naming the part that takes it. */
export function commandShape(protocol: AnyProtocol, type: string): ShapeNode | null {
  for (const [name, fields] of Object.entries(shapesOf(protocol, "command"))) {
    const variants = partVariants(fields);
    if (name === type) return { kind: "struct", fields };
    if (variants !== null && Object.hasOwn(variants, type)) return variants[type] as ShapeNode;
  }
  return null;
}

/** The command as the protocol takes it: wrapped for the part of an assembly that knows it. */
export function addressed(protocol: AnyProtocol, command: Tagged): Tagged {
  const shapes = shapesOf(protocol, "command");
  if (Object.hasOwn(shapes, command.type)) return command;
  const part = Object.entries(shapes).find(([, fields]) => Object.hasOwn(partVariants(fields) ?? {}, command.type));
  return part === undefined ? command : ({ type: part[0], body: command } as Tagged);
}

export function timersOf(protocol: AnyProtocol): string[] {
  return Object.keys((protocol as { timeout?: object }).timeout ?? {});
}

/** Whether `word` names this timer; a part's timer may be named without its part. */
export const isTimer = (timer: string, word: string): boolean => timer === word || timer.endsWith(`.${word}`);

/** Whether `word` names this property; a part's property may be named without its part. */
export const isProperty = (property: string, word: string): boolean =>
  property === word || property.endsWith(`: ${word}`);

/** The type of a message or an event: its own, or that of what a part says. */
export const typeOf = (said: Tagged): string => unwrapped(said).type;

/** The same entries, in which deliveries and what is held back have those names. */
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

/** In the part of an assembly that said it. */
function withId(event: Tagged, id: string): Tagged {
  return rewrapped(event, { ...unwrapped(event), id });
}
