/**
 * An assembly whose commands and events are those of its parts, without their wrapping: to others it is one layer. What is
 * not named passes between the parts only.
 */
import type { EventOf, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { contexts, withContext } from "../../contexts.ts";

// Inside, handlers are looked up by name; the types of the parts and of the whole keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

export interface Face {
  /** By part. */
  readonly commands: Readonly<Record<string, readonly string[]>>;
  readonly events: Readonly<Record<string, readonly string[]>>;
}

export function flattened<V extends Vocabulary>(assembly: object, { commands, events }: Face): Protocol<V> {
  const whole = assembly as Any;
  const outward = contexts((ctx) => ({
    emit({ type: part, body }: Any, until) {
      if (events[part]?.includes(body.type) === true) ctx.emit(body as EventOf<V>, until);
    },
    reply: (request, { body }: Any) => ctx.reply(request, body as never),
  }));
  const named = Object.entries(commands).flatMap(([part, types]) => types.map((type) => ({ part, type })));
  const byName = (entry: (part: string, type: string) => unknown): object =>
    Object.fromEntries(named.map(({ part, type }) => [type, entry(part, type)]));
  return {
    ...withContext(whole, outward),
    command: byName(
      (part) => (states: Any, command: Any, ctx: Any) =>
        whole.command[part](states, { type: part, body: command }, outward(ctx)),
    ),
    shapes: {
      ...whole.shapes,
      command: byName((part, type) => whole.shapes.command[part].body.variants[type].fields),
      reply: Object.assign({}, ...Object.values<Any>(whole.shapes.reply).map(({ body }) => fieldsOf(body.variants))),
    },
  };
}

const fieldsOf = (variants: Any): object =>
  Object.fromEntries(Object.entries<Any>(variants).map(([type, { fields }]) => [type, fields]));
