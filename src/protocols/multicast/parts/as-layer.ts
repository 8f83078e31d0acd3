/**
 * An assembly as one layer: its commands, events and replies are those of its parts, without their wrapping. What the face does not
 * name passes between the parts only.
 */
import type { Context, NodeId, Protocol, Tagged, Vocabulary } from "../../../core/protocol.ts";
import { contexts, mapped, withContext } from "../../contexts.ts";

// Inside, handlers are looked up by name; the types of the parts and of the whole keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

export interface Face {
  /** By type: the part that a command goes to, and as what; null where it goes nowhere. */
  readonly commands: Readonly<Record<string, (command: Any, self: NodeId) => { part: string; body: Tagged } | null>>;
  readonly shapes: object;
  /** What the world hears of what a part emits. */
  event(part: string, body: Any): Tagged | null;
  /** The world hears of a step when its messages have been sent: a layer that passes a message on before it delivers it does so. */
  readonly afterStep?: true;
}

export const to =
  (part: string) =>
  (body: Tagged): { part: string; body: Tagged } => ({ part, body });

export function asLayer<V extends Vocabulary>(
  assembly: object,
  { commands, shapes, event, afterStep }: Face,
): Protocol<V> {
  const whole = assembly as Any;
  /** What a step has said, by the context of its node. */
  const said = new WeakMap<object, { heard: Any; until: Any }[]>();
  const outward = contexts((ctx) => {
    const events: { heard: Any; until: Any }[] = [];
    said.set(ctx, events);
    return {
      emit({ type: part, body }: Any, until) {
        const heard = event(part, body);
        if (heard === null) return;
        if (afterStep) events.push({ heard, until });
        else ctx.emit(heard, until);
      },
      reply: (request, { body }: Any) => ctx.reply(request, body as never),
    };
  });
  function tell(ctx: Context<Any>): void {
    for (const { heard, until } of said.get(ctx)?.splice(0) ?? []) ctx.emit(heard, until);
  }
  return {
    ...withContext(whole, outward, tell),
    command: mapped(commands, (route) => (states: Any, command: Any, ctx: Any) => {
      const given = route(command, ctx.self);
      if (given === null) return;
      whole.command[given.part](states, { type: given.part, body: given.body }, outward(ctx));
      tell(ctx);
    }),
    shapes: { ...whole.shapes, command: shapes, reply: repliesOf(whole) },
  };
}

/** Of all parts together. */
function repliesOf({ shapes }: Any): object {
  const variants = Object.values<Any>(shapes.reply ?? {}).flatMap(({ body }) => Object.entries<Any>(body.variants));
  return Object.fromEntries(variants.map(([type, { fields }]) => [type, fields]));
}
