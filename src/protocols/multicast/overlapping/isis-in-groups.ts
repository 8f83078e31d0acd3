/**
 * Total order by agreement for overlapping groups: the members of a message's group propose for it and are told what is
 * agreed; a node has one queue, and one pair of numbers A and P, for all groups that it is in.
 * Birman & Joseph, ACM TOCS 1987; Coulouris et al. §15.4.3, on overlapping groups.
 *
 * Assumes   no crashes; reliable links, in any order; closed groups whose members stay the same.
 * Safety    C6, pairwise: two nodes deliver what both deliver in the same order, to whichever groups it was sent.
 * Liveness  validity, and agreement within each group.
 * Cost      3(N − 1) messages per multicast to a group of N.
 */
import type { Context, Protocol } from "../../../core/protocol.ts";
import { natural, text } from "../../../core/shape.ts";
import { contexts } from "../../contexts.ts";
import { type Isis, isis } from "../isis.ts";
import { eventually } from "../parts/eventually.ts";
import { MAX_PAYLOAD_BYTES } from "../parts/group.ts";
import { type GroupMulticast, type GroupsOptions, groupsGiven, isMember } from "./groups.ts";

export type IsisInGroups = {
  state: {
    isis: Isis["state"];
    /** Of each of this node's messages, which count from 1: its group. */
    sentTo: number[];
  };
  message: Isis["message"];
  command: GroupMulticast["command"];
  event: GroupMulticast["event"];
};

type Ctx = Context<IsisInGroups>;

/** The algorithm as it is, except that what it multicasts goes to the group of the message in question. */
export function isisInGroups(given?: Partial<GroupsOptions>): Protocol<IsisInGroups> {
  const groups = groupsGiven(given, "isis");
  const alone = isis();

  const among = (group: number, ctx: Ctx): Context<Isis> =>
    contexts((outer) => ({
      broadcast(message) {
        for (const member of groups[group] ?? []) if (member !== outer.self) outer.send(member, message);
      },
    }))(ctx) as Context<Isis>;

  /** Both say the same. */
  const asIsis = (ctx: Ctx): Context<Isis> => ctx as unknown as Context<Isis>;

  return {
    name: "isis",
    init: (self, peers) => ({ isis: alone.init(self, peers), sentTo: [] }),
    receive: {
      multicast: (state, from, message, ctx) => alone.receive.multicast(state.isis, from, message, asIsis(ctx)),
      proposal(state, from, message, ctx) {
        const group = state.sentTo[message.number - 1];
        if (group !== undefined) alone.receive.proposal(state.isis, from, message, among(group, ctx));
      },
      agreed: (state, from, message, ctx) => alone.receive.agreed(state.isis, from, message, asIsis(ctx)),
    },
    command: {
      send(state, { payload, group }, ctx) {
        if (!isMember(groups, group, ctx.self)) return;
        state.sentTo.push(group);
        state.isis.members = [...(groups[group] ?? [])]; // The members of which it waits for a proposal.
        alone.command.send(state.isis, { type: "send", payload }, among(group, ctx));
      },
    },
    shapes: {
      message: alone.shapes.message,
      command: { send: { payload: text(MAX_PAYLOAD_BYTES), group: natural } },
    },
    source: alone.source,
    assumes: ["no crashes", "reliable links", "closed groups"],
    properties: [
      eventually(
        "agreement",
        "nobody holds anything back for ever",
        ({ state }, node) => state(node).isis.heldBack.length === 0,
      ),
    ],
    costs: [{ when: "one multicast to a group of N", messages: (nodes) => 3 * (nodes - 1) }],
    view: (state, self) => alone.view(state.isis, self),
  };
}
