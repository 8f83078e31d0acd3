/**
 * The layers of a multicast: an order stands over what carries its messages, which may stand over something else. What a
 * layer takes and what it says is the same for all of them, so that any stands over any (`over.ts`).
 */
import { assemble, type Wires } from "../../../core/assemble.ts";
import { InvariantViolation } from "../../../core/errors.ts";
import type {
  CommandOf,
  Context,
  EventOf,
  MessageOf,
  NodeId,
  Protocol,
  RecordOf,
  ReplyOf,
  StateOf,
  Tagged,
  TimerOf,
  View,
  Vocabulary,
} from "../../../core/protocol.ts";
import { list, natural, type Shape, type Shapes, variants } from "../../../core/shape.ts";
import { contexts, mapped, withContext } from "../../contexts.ts";

/** What every layer offers. `payload` is text from a user, or a message of the layer above. */
export interface Multicast<P = string> extends Vocabulary {
  command: { type: "send"; payload: P };
  /** `id` names a message of this layer in its view. A sender delivers its own, too. */
  event: { type: "delivered"; from: NodeId; payload: P; id: string };
}

/** There is no room for it, and nothing of it has been sent: said by layers whose group may stand still. */
export type Refusal<P> = { type: "refused"; payload: P };

/** What a layer says of its group to the one above it, after all that it has delivered before. */
export type GroupEvent =
  /** The group is about to change: nothing can be multicast until the next of these. */
  | { type: "blocked" }
  /**
   * The group has changed, and this node is in it. What has been delivered so far is all there was of the view before, the
   * same at every member that was in that one and is in this one.
   */
  | { type: "installed"; view: number; members: NodeId[] }
  /** This node is in the group no more. Others may have delivered less, more or in another order than it had at the end. */
  | { type: "ejected" };

/** The same as the layer above takes it; and how many of its own multicasts of this view all members have. */
export type GroupCommand =
  | { type: "block" }
  | { type: "install"; view: number; members: NodeId[] }
  | { type: "eject" }
  | { type: "stable"; count: number };

export const MAX_MEMBERS = 10_000;

export const groupCommandShapes: Shapes<GroupCommand> = {
  block: {},
  install: { view: natural, members: list(natural, MAX_MEMBERS) },
  eject: {},
  stable: { count: natural },
};

// An assembly as one layer: its commands, events and replies are those of its parts, without their wrapping. What the face does not
// name passes between the parts only.

// Inside, handlers are looked up by name; the types of the parts and of the whole keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

interface Face {
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

// One multicast over another: what the upper broadcasts, the lower multicasts; what the lower delivers, the upper receives.
// The upper's own copy of a message is its own business, as with plain links, and what it sends to a single node goes there
// directly. The whole is a multicast again, so that layers stack. A message is kept by both layers and on the way: nobody
// changes it once it has been broadcast or received.

/** The type bag of `over(upper, lower)`: commands, events and replies are the layers' own, everything else is wrapped in its layer's name. */
export type Over<U extends Vocabulary, L extends Vocabulary> = {
  state: { upper: StateOf<U>; lower: StateOf<L> };
  message: InLayer<"upper", MessageOf<U>> | InLayer<"lower", MessageOf<L>>;
  timer: `upper.${TimerOf<U>}` | `lower.${TimerOf<L>}`;
  command: CommandOf<U> | Exclude<CommandOf<L>, { type: CommandOf<U>["type"] | "send" }>;
  event: EventOf<U> | Exclude<EventOf<L>, { type: "delivered" }>;
  record: InLayer<"upper", RecordOf<U>> | InLayer<"lower", RecordOf<L>>;
  reply: ReplyOf<U> | ReplyOf<L>;
};
type InLayer<N extends string, Body> = [Body] extends [never] ? never : { type: N; body: Body };
/** What the upper is told when the lower speaks of the group. */
const told: { readonly [K in GroupEvent["type"] | "stable"]: GroupCommand["type"] } = {
  blocked: "block",
  installed: "install",
  ejected: "eject",
  stable: "stable",
};

/** @param lower makes a `Multicast` for payloads of the shape of what the upper broadcasts. */
export function over<U extends Vocabulary, L extends Vocabulary>(
  upper: Protocol<U>,
  lower: (payload: Shape<MessageOf<U>>) => Protocol<L>,
): Protocol<Over<U, L>> {
  const above = upper as Any;
  const below = lower(variants((above.shapes.message ?? {}) as Shapes<Any>)) as Any;
  const news = Object.entries(told).filter(([, command]) => Object.hasOwn(above.command ?? {}, command));
  // Of the group the upper speaks itself. What is stable concerns the layer above it, too.
  const inner = new Set(["delivered", ...news.map(([event]) => event)].filter((event) => event !== "stable"));

  const wires: Wires<Any> = {
    upper: { [MULTICAST]: ({ message }: Any, give: Any) => give("lower", { type: "send", payload: message }) },
    lower: {
      delivered: ({ from, payload }: Any, give: Any) => give("upper", { type: HEARD, from, message: payload }),
      refused() {
        // An order that has been told its carrier's room never comes here. It counts the message as sent: all that came
        // after it would wait for it, everywhere and for ever.
        const text = `${below.name} has no room for a message of ${above.name}, which has not been told how much there is`;
        throw new InvariantViolation("layer-refused", text);
      },
      ...Object.fromEntries(
        news.map(([event, command]) => [event, (said: Any, give: Any) => give("upper", { ...said, type: command })]),
      ),
    },
  };
  const parts = { upper: carried(above), lower: below };
  const stack = assemble<Any>(above.name, parts, wires, { face: "upper" }) as Any;

  const { send: _carriesTheUpper, ...others } = below.command ?? {};
  const { send: _itsShape, ...otherShapes } = below.shapes.command ?? {};
  const layer = asLayer<Over<U, L>>(stack, {
    commands: {
      ...mapped(others, () => to("lower")),
      ...mapped(above.command ?? {}, () => to("upper")),
    } as Face["commands"],
    shapes: { ...otherShapes, ...above.shapes.command },
    // What passes between the layers is not for the world.
    event: (of, event) => ((of === "upper" ? event.type === MULTICAST : inner.has(event.type)) ? null : event),
    afterStep: true,
  });
  return {
    ...layer,
    view: (states: Any, self: NodeId) =>
      seenTogether(above.view(states.upper, self), below.name, below.view(states.lower, self)),
  };
}

/** The upper's picture. What the lower holds back, messages of the upper and not of its user, bears the lower's name. */
function seenTogether(upper: View, lowerName: string, { held = [] }: View): View {
  if (held.length === 0) return upper;
  return { ...upper, held: [...(upper.held ?? []), ...held.map((id) => `${lowerName} ${id}`)] };
}

/** Names that no layer has. */
const MULTICAST = "multicast:";
const HEARD = "heard:";

/** The upper as a part: what it broadcasts is an event, and what others have broadcast comes as a command. */
function carried(upper: Any): Any {
  const inward = contexts((ctx) => ({
    broadcast: (message: Any) => ctx.emit({ type: MULTICAST, message } as Any),
  }));
  function heard(state: Any, { from, message }: Any, ctx: Any): void {
    if (from !== ctx.self) upper.receive[message.type](state, from, message, ctx);
  }
  return withContext({ ...upper, command: { ...upper.command, [HEARD]: heard } }, inward);
}
