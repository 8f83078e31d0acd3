/**
 * View synchrony: reliable multicast in a group whose members join, leave and crash. All nodes see the same views, and
 * members that move together from one view to the next have delivered the same messages before the change. Birman &
 * Joseph, "Exploiting Virtual Synchrony in Distributed Systems", SOSP 1987; terms of Chockler, Keidar & Vitenberg,
 * "Group Communication Specifications", ACM Computing Surveys 2001, and Coulouris et al. §18.2.
 *
 * Assumes   crash-recovery nodes with a journal; datagrams may be lost, duplicated and reordered, but not forever. For
 *           liveness: a connected majority is alive; eventually a round trip takes less than `roundMs`.
 * Safety    virtual synchrony: any two nodes that move from view k to view k + 1 have delivered the same messages in k.
 *           A node delivers its own messages. There is a single sequence of views, each decided by a majority. Messages
 *           from the same sender are delivered in the order they were sent, never twice, and never outside a view.
 * Liveness  eventually, all live nodes that want to be in the group are in the same view, and they all deliver the
 *           messages that any of them delivers. A minority changes nothing and reports that it is stalled; its nodes
 *           later rejoin in new incarnations.
 * Cost      a multicast costs the same as in ip-multicast. A view change costs 5(N − 1) messages, plus 2 for each
 *           member that lacks messages from the previous view, plus N − 1 if a member asks to join or leave.
 *
 * Messages that the application sends while the group is changing are multicast in the next view. The `ip-multicast`
 * part blocks, reports the messages that it holds, and obtains the rest up to the cut. The `views` part agrees with the
 * other members on the cut and the next view.
 */
import { type Assembly, assemble, type Wires } from "../../core/assemble.ts";
import type { NodeId, Property, Protocol, World } from "../../core/protocol.ts";
import { type Shape, text } from "../../core/shape.ts";
import { type Views, type ViewsOptions, views } from "../membership/views/agreement.ts";
import { inPart, requireParts, withFixed } from "../options.ts";
import { type IpMulticast, type IpMulticastOptions, ipMulticast } from "./ip-multicast/ip-multicast.ts";
import { isCutOf } from "./ip-multicast/vocabulary.ts";
import { asLayer, to } from "./parts/layers.ts";
import { multicastEvents, viewWires } from "./parts/view-wires.ts";

type Parts<P> = { multicast: IpMulticast<P>; views: Views };
type Whole<P> = Assembly<Parts<P>>;

/** Vocabulary of view synchrony. */
export interface ViewSynchrony<P = string> {
  /** The states of both parts. */
  state: Whole<P>["state"];
  /** The messages of both parts. */
  message: Whole<P>["message"];
  /** The timers of both parts. */
  timer: Whole<P>["timer"];
  /** The journal records of both parts. */
  record: Whole<P>["record"];
  /** `send` goes to the multicast, and the other commands go to the views. */
  command:
    | Extract<IpMulticast<P>["command"], { type: "send" }>
    | Extract<Views["command"], { type: "suspect" | "restore" | "join" | "leave" }>;
  /**
   * The multicast's events, except those that only the views receive, and the views' `left`, `stalled` and `resumed`
   * events.
   */
  event:
    | Exclude<IpMulticast<P>["event"], { type: "flushed" | "filled" }>
    | Extract<Views["event"], { type: "left" | "stalled" | "resumed" }>;
}

/** Options of `viewSynchrony()`, by part. */
export interface ViewSynchronyOptions {
  /** Options of the multicast. */
  multicast?: Partial<Omit<IpMulticastOptions, "begin">>;
  /** Options of the agreement on views. */
  views?: Partial<ViewsOptions>;
}

const MAX_PAYLOAD_BYTES = 65_536;

const viewEvents = ["left", "stalled", "resumed"];

/**
 * Creates view synchrony.
 * @param payload the shape of the messages: text, or messages from the layer above
 * @throws UsageError if an option is unknown or out of range
 */
export function viewSynchrony<P = string>(
  options: ViewSynchronyOptions = {},
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<P>,
): Protocol<ViewSynchrony<P>> {
  requireParts("view-synchrony", options, ["multicast", "views"]);
  const parts = {
    multicast: inPart("multicast", () =>
      withFixed(["begin"], () => ipMulticast<P>({ ...options.multicast, begin: "outside" }, payload)),
    ),
    views: inPart("views", () => views(options.views)),
  };
  const wires = viewWires as unknown as Wires<Parts<P>>;
  const whole = assemble<Parts<P>>("view-synchrony", parts, wires, { face: "multicast" });
  const { suspect, restore, join, leave } = parts.views.shapes.command;
  const flat = asLayer<ViewSynchrony<P>>(whole, {
    commands: {
      send: to("multicast"),
      suspect: to("views"),
      restore: to("views"),
      join: to("views"),
      leave: to("views"),
    },
    shapes: { send: parts.multicast.shapes.command.send, suspect, restore, join, leave },
    event: (part, body) => ((part === "multicast" ? multicastEvents : viewEvents).includes(body.type) ? body : null),
  });
  const receive = {
    ...flat.receive,
    views(state, from, message, ctx) {
      if (!isUnfounded<P>(state, ctx.self, message.body)) flat.receive?.views?.(state, from, message, ctx);
    },
  } as Protocol<ViewSynchrony<P>>["receive"];
  return {
    ...flat,
    receive,
    source: "Birman & Joseph, SOSP 1987; Chockler, Keidar & Vitenberg, ACM Computing Surveys 2001",
    assumes: [
      "crash-recovery nodes with a journal",
      "datagrams may be lost, duplicated and reordered, but not forever",
      "for liveness: a live, connected majority, with round trips eventually below roundMs",
    ],
    properties: [...flat.properties, sameView<P>()],
    costs: [
      { when: "one multicast", messages: (nodes) => nodes - 1 },
      { when: "one view change with no missing message", messages: (nodes) => 5 * (nodes - 1) },
    ],
  };
}

/**
 * Whether a message names a next view that includes this node even though the node does not hold the view's cut. No
 * correct node proposes such a view, because this node's deliveries in it would differ from the others'.
 */
function isUnfounded<P>({ multicast, views: known }: Whole<P>["state"], self: NodeId, body: Views["message"]): boolean {
  const next = "view" in body ? body.view : body.type === "promise" ? body.accepted?.view : undefined;
  if (next === undefined || next.number !== known.view.number + 1 || multicast.phase === "outside") return false;
  const goesOn = next.members.some(({ node, incarnation }) => node === self && incarnation === known.incarnation);
  return goesOn && !isCutOf(multicast, next.cut);
}

/** Checks that the multicast is in the decided view, or outside the group. */
function sameView<P>(): Property<ViewSynchrony<P>> {
  return {
    name: "messages belong to the view",
    claim: "the layer below is in the same view as the node, with the same members",
    when: "always",
    holds: ({ alive, state }: World<ViewSynchrony<P>["state"]>) =>
      alive.every((node) => {
        const { multicast, views: agreed } = state(node);
        if (multicast.phase === "outside") return true;
        return (
          multicast.view === agreed.view.number &&
          multicast.members.join() === agreed.view.members.map((member) => member.node).join()
        );
      }),
  };
}
