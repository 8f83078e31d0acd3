/**
 * One multicast over another: what the upper broadcasts, the lower multicasts; what the lower delivers, the upper receives.
 * The upper's own copy of a message is its own business, as with plain links, and what it sends to a single node goes there
 * directly. The whole is a multicast again, so that layers stack. A message is kept by both layers and on the way: nobody
 * changes it once it has been broadcast or received.
 */
import { assemble, type Wires } from "../../../core/assemble.ts";
import { InvariantViolation } from "../../../core/errors.ts";
import type {
  CommandOf,
  EventOf,
  MessageOf,
  NodeId,
  Protocol,
  RecordOf,
  ReplyOf,
  StateOf,
  TimerOf,
  View,
  Vocabulary,
} from "../../../core/protocol.ts";
import { type Shape, type Shapes, variants } from "../../../core/shape.ts";
import { contexts, mapped, withContext } from "../../contexts.ts";
import { asLayer, type Face, to } from "./as-layer.ts";
import type { GroupCommand, GroupEvent } from "./layers.ts";

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
// Inside, handlers are looked up by name; the types above keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

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
