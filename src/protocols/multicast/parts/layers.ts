/**
 * Multicast layers: an order runs over a carrier, which transports the order's messages and may itself run over another
 * layer. All layers have the same commands and events, so any layer can run over any other.
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

/** The interface of every layer. `payload` is text from a user, or a message from the layer above. */
export interface Multicast<P = string> extends Vocabulary {
  /** Sends a payload to all members of the group. */
  command: { type: "send"; payload: P };
  /** `id` identifies the message at this layer within its view. A sender also delivers its own messages. */
  event: { type: "delivered"; from: NodeId; payload: P; id: string };
}

/** The message did not fit, and no part of it has been sent. Emitted by layers whose group may be blocked. */
export type Refusal<P> = { type: "refused"; payload: P };

/** Group changes that a layer reports to the layer above it, after all earlier deliveries. */
export type GroupEvent =
  /** The group is changing. Multicasts are blocked until the next group event. */
  | { type: "blocked" }
  /**
   * The group has changed, and this node is a member. All deliveries in the previous view are complete, and are the
   * same at every member of both views.
   */
  | { type: "installed"; view: number; members: NodeId[] }
  /**
   * This node is no longer in the group. Other members may have delivered fewer or more messages, or the same messages
   * in a different order.
   */
  | { type: "ejected" };

/**
 * The group events as commands for the layer above. `stable`: the number of this node's multicasts in this view that
 * all members have.
 */
export type GroupCommand =
  | { type: "block" }
  | { type: "install"; view: number; members: NodeId[] }
  | { type: "eject" }
  | { type: "stable"; count: number };

/** The maximum number of members in a group. */
export const MAX_MEMBERS = 10_000;

export const groupCommandShapes: Shapes<GroupCommand> = {
  block: {},
  install: { view: natural, members: list(natural, MAX_MEMBERS) },
  eject: {},
  stable: { count: natural },
};

// Presents an assembly as a single layer, with the unwrapped commands, events and replies of its parts. Anything that
// `Face` does not list passes only between the parts.

// Handlers are looked up by name. The types of the parts and of the assembly keep callers type-safe.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

interface Face {
  /**
   * For each command type, returns the part that handles the command and the command for that part. Null if the command
   * is dropped.
   */
  readonly commands: Readonly<Record<string, (command: Any, self: NodeId) => { part: string; body: Tagged } | null>>;
  readonly shapes: object;
  /** Returns the event that the layer emits for an event from a part. Null if it does not emit one. */
  event(part: string, body: Any): Tagged | null;
  /**
   * Set if events are emitted after the step's messages have been sent, for layers that must forward a message before
   * they deliver it.
   */
  readonly afterStep?: true;
}

export const to =
  (part: string) =>
  (body: Tagged): { part: string; body: Tagged } => ({ part, body });

/** Makes the assembly look like a single layer. */
export function asLayer<V extends Vocabulary>(
  assembly: object,
  { commands, shapes, event, afterStep }: Face,
): Protocol<V> {
  const whole = assembly as Any;
  /** The current step's events, keyed by the node's context. */
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

/** Returns the replies of all parts. */
function repliesOf({ shapes }: Any): object {
  const variants = Object.values<Any>(shapes.reply ?? {}).flatMap(({ body }) => Object.entries<Any>(body.variants));
  return Object.fromEntries(variants.map(([type, { fields }]) => [type, fields]));
}

// One multicast over another: the lower layer multicasts the upper layer's broadcasts, and the upper layer receives the
// lower layer's deliveries. As over plain links, the upper layer handles its own copy of a message itself. Its messages
// to a single node are sent directly. The result is again a multicast, so layers can be stacked. Both layers and the
// network share the same message object, so it must not be modified after it has been broadcast or received.

/**
 * Vocabulary of `over(upper, lower)`. Commands, events and replies are unwrapped, and everything else is wrapped with
 * its layer's name.
 */
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
/** For each group event from the lower layer, the command that the upper layer receives. */
const told: { readonly [K in GroupEvent["type"] | "stable"]: GroupCommand["type"] } = {
  blocked: "block",
  installed: "install",
  ejected: "eject",
  stable: "stable",
};

/** Stacks one multicast on another. @param lower creates a `Multicast` for the upper layer's messages */
export function over<U extends Vocabulary, L extends Vocabulary>(
  upper: Protocol<U>,
  lower: (payload: Shape<MessageOf<U>>) => Protocol<L>,
): Protocol<Over<U, L>> {
  const above = upper as Any;
  const below = lower(variants((above.shapes.message ?? {}) as Shapes<Any>)) as Any;
  const news = Object.entries(told).filter(([, command]) => Object.hasOwn(above.command ?? {}, command));
  // Events from the lower layer that the combined layer does not emit, because the upper layer reports group changes
  // itself. `stable` also goes to the layer above.
  const inner = new Set(["delivered", ...news.map(([event]) => event)].filter((event) => event !== "stable"));

  const wires: Wires<Any> = {
    upper: { [MULTICAST]: ({ message }: Any, give: Any) => give("lower", { type: "send", payload: message }) },
    lower: {
      delivered: ({ from, payload }: Any, give: Any) => give("upper", { type: HEARD, from, message: payload }),
      refused() {
        // If an order knows how much room its carrier has, its messages cannot be refused. The order has already
        // counted the refused message as sent, so all nodes would wait forever for that message and all later ones.
        const text = `expected ${above.name} to know how many messages ${below.name} can accept, but ${below.name} refused one: set the option room of ${above.name}`;
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
    // Messages between the layers stay internal.
    event: (of, event) => ((of === "upper" ? event.type === MULTICAST : inner.has(event.type)) ? null : event),
    afterStep: true,
  });
  return {
    ...layer,
    view: (states: Any, self: NodeId) =>
      seenTogether(above.view(states.upper, self), below.name, below.view(states.lower, self)),
  };
}

/**
 * Returns the upper layer's view. The lower layer's held-back messages are prefixed with its name, because they belong
 * to the upper layer and not to its user.
 */
function seenTogether(upper: View, lowerName: string, { held = [] }: View): View {
  if (held.length === 0) return upper;
  return { ...upper, held: [...(upper.held ?? []), ...held.map((id) => `${lowerName} ${id}`)] };
}

/** An event name that no layer uses. */
const MULTICAST = "multicast:";
const HEARD = "heard:";

/**
 * Returns the upper layer as a part of an assembly. Its broadcasts become events, and other nodes' broadcasts arrive as
 * commands.
 */
function carried(upper: Any): Any {
  const inward = contexts((ctx) => ({
    broadcast: (message: Any) => ctx.emit({ type: MULTICAST, message } as Any),
  }));
  function heard(state: Any, { from, message }: Any, ctx: Any): void {
    if (from !== ctx.self) upper.receive[message.type](state, from, message, ctx);
  }
  return withContext({ ...upper, command: { ...upper.command, [HEARD]: heard } }, inward);
}
