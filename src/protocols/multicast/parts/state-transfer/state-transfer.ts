/**
 * State transfer over a total order: a member that requests the group's state gets it as of one position in the order,
 * followed by all later deliveries. If no member has a state, one member's own state becomes the group's. Birman &
 * Joseph, "Exploiting Virtual Synchrony in Distributed Systems", SOSP 1987, §4; Schneider, "Implementing Fault-Tolerant
 * Services Using the State Machine Approach", ACM Computing Surveys 1990, §7 (integration of a repaired replica).
 *
 * Assumes   a total order with views that preserves each member's sending order, although, as on the replicated log,
 *           messages may be delivered in a later view than they were sent in; messages from one member to another may
 *           be lost, but not forever. Users that hold the state change it only through deliveries, deterministically,
 *           and return it when asked. For liveness: a stable view whose members all run this protocol.
 * Safety    after any position in the order, all users that hold the state have the same one, including survivors of
 *           earlier views; a user applies every delivery after its state's position, and none twice; while a member of
 *           the view holds the state, no other state is founded.
 * Liveness  in a stable view, a member that requests the state gets it or founds it, if users return it when asked.
 * Cost      nothing unless a node joins. For a new member of a view with N members: one multicast by the member and up
 *           to N − 1 by others that have not yet reported their standing; for a state in k parts, ⌈k / 8⌉ requests and
 *           k parts; finally, one more multicast.
 *
 * A member that is left out of a view may have delivered messages that others have not. Its state is therefore void,
 * and it gets another one. If the last member that holds the state leaves, the state is lost.
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

/** Vocabulary of `stateTransfer(order)`: the order's vocabulary, plus commands and events about states. */
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

// Orders can have any type. The types above keep callers type-safe.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

const told: { readonly [K in GroupEvent["type"] | "delivered"]: Transfer<Any>["command"]["type"] } = {
  delivered: "deliver",
  blocked: "block",
  installed: "install",
  ejected: "eject",
};

/** Other events from the order. They pass through the transfer so that the user receives all events in sequence. */
const passed = ["stable", "left", "stalled", "resumed"];

/**
 * Adds state transfer to a total order.
 * @param orderOf creates a total order for payloads of the given shape.
 * @param begin must be the same as for the order.
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

/**
 * Returns the event that the combined protocol emits for an event from a part. Null if it does not emit one. The
 * order's group events and deliveries are emitted after the transfer has processed them, in the same order.
 */
function outward(part: string, body: Any): Tagged | null {
  if (part === "transfer") return body.type === "say" ? null : body;
  if (body.type === "refused")
    return body.payload.type === "message" ? { ...body, payload: body.payload.payload } : null;
  return Object.hasOwn(told, body.type) || passed.includes(body.type) ? null : body;
}

// Total orders over view synchrony, with state transfer for members that request it.

const anyText = text(MAX_PAYLOAD_BYTES);

export type IsisWithState<P = string> = StateTransfer<P, FlushIsis<Entry<P>>>;
export type CausalTotalWithState<P = string> = StateTransfer<P, FlushCausalTotal<Entry<P>>>;

/** Creates the total order of ISIS with state transfer. */
export const isisWithState = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<IsisWithState<P>> => stateTransfer((entry) => flushIsis(options, entry), payload);

/** Creates causal-total order with state transfer. */
export const causalTotalWithState = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<CausalTotalWithState<P>> => stateTransfer((entry) => flushCausalTotal(options, entry), payload);
