/**
 * State transfer over a total order: a member that wants the state of the group gets it as of one place of the order, and then
 * all that is delivered after that place. If nobody has a state, one member's own becomes the group's.
 * Birman & Joseph, "Exploiting Virtual Synchrony in Distributed Systems", SOSP 1987, §4; Schneider, "Implementing Fault-Tolerant
 * Services Using the State Machine Approach", ACM Computing Surveys 1990, §7 (integration of a repaired replica).
 *
 * Assumes   a total order with views, in which each member's own come in its order, if in later views than it said them in,
 *           as on the replicated log; what one member sends to another alone may
 *           be lost, but not for ever. Users that hold the state change it by what is delivered alone, deterministically, and
 *           say it when they are asked. For liveness: a view that stays, whose members all run this.
 * Safety    after any place of the order, users that hold the state have the same, also those of views before that went on;
 *           of what is delivered from where one got it, it applies everything, and nothing twice; as long as a member of the
 *           view holds the state nobody founds another.
 * Liveness  in a view that stays, a member that wants the state gets it or founds it, if users that are asked say it.
 * Cost      nothing while nobody comes. One more in a view with N members: a multicast of its own and up to N − 1 of the
 *           others, if they have not said yet how they stand; ⌈k / 8⌉ requests and k parts for a state in k parts; and a multicast.
 *
 * Whoever is left out of a view has delivered what others may not have: its state counts no more, and it gets another. If the
 * last member that holds the state goes, the state goes with it.
 */
import { type Assembly, assemble, type Wires } from "../../../../core/assemble.ts";
import type { CommandOf, EventOf, Protocol, Tagged, Vocabulary } from "../../../../core/protocol.ts";
import { type Shape, text } from "../../../../core/shape.ts";
import type { ViewSynchronyOptions } from "../../view-synchrony.ts";
import { type FlushCausalTotal, type FlushIsis, flushCausalTotal, flushIsis } from "../flush.ts";
import { MAX_PAYLOAD_BYTES } from "../group.ts";
import { asLayer, type GroupEvent, to } from "../layers.ts";
import { transfer } from "./transfer.ts";
import { type Entry, entryShape, type StateCommand, type StateEvent, type Transfer } from "./vocabulary.ts";

/** The type bag of `stateTransfer(order)`: what the order has, and what is said of states. */
export type StateTransfer<P, O extends Vocabulary> = {
  state: Whole<P, O>["state"];
  message: Whole<P, O>["message"];
  timer: Whole<P, O>["timer"];
  record: Whole<P, O>["record"];
  command: { type: "send"; payload: P } | Exclude<CommandOf<O>, { type: "send" }> | StateCommand;
  event:
    | Extract<Transfer<P>["event"], { type: "delivered" }>
    | { type: "refused"; payload: P }
    | Exclude<EventOf<O>, { type: "delivered" | "refused" }>
    | StateEvent;
};
type Whole<P, O extends Vocabulary> = Assembly<{ transfer: Transfer<P>; order: O }>;

// Inside, orders are any; the type above keeps callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

const told: { readonly [K in GroupEvent["type"] | "delivered"]: Transfer<Any>["command"]["type"] } = {
  delivered: "deliver",
  blocked: "block",
  installed: "install",
  ejected: "eject",
};

/** What else the order says of its group, and what the user is to hear in its place among the others. */
const passed = ["stable", "left", "stalled", "resumed"];

/**
 * @param orderOf makes a total order for payloads of that shape.
 * @param begin as the order does.
 */
export function stateTransfer<P, O extends Vocabulary>(
  orderOf: (payload: Shape<Entry<P>>) => Protocol<O>,
  payload: Shape<P>,
  begin: "inside" | "outside" = "outside",
): Protocol<StateTransfer<P, O>> {
  const order = orderOf(entryShape(payload)) as Any;
  const wires: Wires<Any> = {
    transfer: { say: ({ payload: entry }: Any, give: Any) => give("order", { type: "send", payload: entry }) },
    order: {
      ...Object.fromEntries(
        Object.entries(told).map(([event, type]) => [
          event,
          (said: Any, give: Any) => give("transfer", { ...said, type }),
        ]),
      ),
      ...Object.fromEntries(
        passed.map((event) => [event, (said: Any, give: Any) => give("transfer", { type: "pass", event: said })]),
      ),
      refused({ payload: entry }: Any, give: Any) {
        if (entry.type === "standing") give("transfer", { type: "refuse" });
      },
    },
  };
  const parts: { transfer: Any; order: Any } = { transfer: transfer<P>(begin), order };
  const whole = assemble<Any>(order.name, parts, wires, { face: "order" });
  const { send: _entries, ...others } = order.shapes.command;
  const { seek, lack, snapshot } = parts.transfer.shapes.command;
  return asLayer<StateTransfer<P, O>>(whole, {
    commands: {
      ...Object.fromEntries(Object.keys(others).map((type) => [type, to("order")])),
      send: ({ payload: said }: Any) => ({
        part: "order",
        body: { type: "send", payload: { type: "message", payload: said } } as Tagged,
      }),
      seek: to("transfer"),
      lack: to("transfer"),
      snapshot: to("transfer"),
    },
    shapes: { ...others, send: { payload }, seek, lack, snapshot },
    event: outward,
  });
}

/** What the order says of its group and of what it delivers is said once the transfer has it, in the same order. */
function outward(part: string, body: Any): Tagged | null {
  if (part === "transfer") return body.type === "say" ? null : body;
  if (body.type === "refused")
    return body.payload.type === "message" ? { ...body, payload: body.payload.payload } : null;
  return Object.hasOwn(told, body.type) || passed.includes(body.type) ? null : body;
}

// The total orders over view synchrony, with the state of the group for members that want it.

const anyText = text(MAX_PAYLOAD_BYTES);

export type IsisWithState<P = string> = StateTransfer<P, FlushIsis<Entry<P>>>;
export type CausalTotalWithState<P = string> = StateTransfer<P, FlushCausalTotal<Entry<P>>>;

export const isisWithState = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<IsisWithState<P>> => stateTransfer((entry) => flushIsis(options, entry), payload);

export const causalTotalWithState = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<CausalTotalWithState<P>> => stateTransfer((entry) => flushCausalTotal(options, entry), payload);
