/**
 * View synchrony on a replicated log: members send messages directly to each other, as in `view-synchrony`, and the log
 * of a coordination service orders the group changes. Nodes that the members do not know can therefore join, and no
 * second agreement protocol is needed. Birman & Joseph, "Exploiting Virtual Synchrony in Distributed Systems", SOSP
 * 1987.
 *
 * Assumes   the same as `log-views` about the service, and the same as `ip-multicast` about links.
 * Safety    virtual synchrony: any two nodes that move from one view to the next have delivered the same messages in
 *           the first view. A node delivers its own messages. Messages from the same sender are delivered in the order
 *           they were sent, never twice, and never outside a view.
 * Liveness  while the group stays the same, all members deliver the messages that one member delivers; every group
 *           change ends in a new view.
 * Cost      a multicast costs the same as in `ip-multicast` and adds no log entries. A change of the view costs the same
 *           as in `log-views`.
 */
import { type Assembly, assemble, type Wires } from "../../../../core/assemble.ts";
import type { NodeId, Property, Protocol, World } from "../../../../core/protocol.ts";
import { type Shape, text } from "../../../../core/shape.ts";
import { mapped } from "../../../contexts.ts";
import { requireParts } from "../../../options.ts";
import { type IpMulticast, type IpMulticastOptions, ipMulticast } from "../../ip-multicast/ip-multicast.ts";
import { MAX_PAYLOAD_BYTES } from "../group.ts";
import { asLayer, to } from "../layers.ts";
import { multicastEvents, viewWires } from "../view-wires.ts";
import { type LogViews, type LogViewsOptions, logViews } from "./log-views.ts";

type Parts<P> = { multicast: IpMulticast<P>; views: LogViews };
type Whole<P> = Assembly<Parts<P>>;
type Between = "flushed" | "filled";

/** Vocabulary of view synchrony on a log. */
export interface LogViewSynchrony<P = string> {
  state: Whole<P>["state"];
  message: Whole<P>["message"];
  timer: Whole<P>["timer"];
  command: Extract<IpMulticast<P>["command"], { type: "send" }> | Exclude<LogViews["command"], { type: Between }>;
  event:
    | Exclude<IpMulticast<P>["event"], { type: Between }>
    | Extract<LogViews["event"], { type: "left" | "stalled" | "resumed" | "asked" }>;
}

/** Options of view synchrony on a log, by part. */
export interface LogViewSynchronyOptions {
  multicast?: Partial<Omit<IpMulticastOptions, "begin">>;
  views?: Partial<LogViewsOptions>;
}

const viewEvents = ["left", "stalled", "resumed", "asked"];

/**
 * Creates view synchrony on a replicated log.
 * @param payload the shape of the messages: text, or messages from the layer above
 */
export function logViewSynchrony<P = string>(
  options: LogViewSynchronyOptions = {},
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<LogViewSynchrony<P>> {
  requireParts("log-view-synchrony", options, ["multicast", "views"]);
  const parts = {
    multicast: ipMulticast<P>({ ...options.multicast, begin: "outside" }, payload),
    views: logViews(options.views),
  };
  const wires = viewWires as unknown as Wires<Parts<P>>;
  const whole = assemble<Parts<P>>("view-synchrony", parts, wires, { face: "multicast" });
  const { flushed: _flushed, filled: _filled, ...commands } = parts.views.shapes.command;
  const flat = asLayer<LogViewSynchrony<P>>(whole, {
    commands: { ...mapped(commands, () => to("views")), send: to("multicast") },
    shapes: { send: parts.multicast.shapes.command.send, ...commands },
    event: (part, body) => ((part === "multicast" ? multicastEvents : viewEvents).includes(body.type) ? body : null),
  });
  return {
    ...flat,
    source: "Birman & Joseph, SOSP 1987",
    properties: [...flat.properties, sameView<P>()],
    costs: [{ when: "one multicast", messages: (nodes) => nodes - 1 }],
  };
}

function sameView<P>(): Property<LogViewSynchrony<P>> {
  return {
    name: "messages belong to the view",
    claim: "the layer below is in the same view as the node, with the same members",
    when: "always",
    holds: ({ alive, state }: World<LogViewSynchrony<P>["state"]>) =>
      alive.every((node: NodeId) => {
        const { multicast, views } = state(node);
        if (multicast.phase === "outside") return true;
        return multicast.view === views.view.number && multicast.members.join() === views.view.members.join();
      }),
  };
}
