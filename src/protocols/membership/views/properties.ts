/** What views declares: the shapes of what is sent and journalled, what it promises, what it costs. */
import type { NodeId, Protocol, World } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, type Shape, struct } from "../../../core/shape.ts";
import { type Accepted, type GroupView, isInside, type Member, nodesOf, type Views } from "./vocabulary.ts";

const MAX_MEMBERS = 10_000;
const counts = list(natural, MAX_MEMBERS);
const viewShape: Shape<GroupView> = struct<GroupView>({
  number: natural,
  members: list(struct<Member>({ node: natural, incarnation: natural }), MAX_MEMBERS),
  cut: counts,
});
const acceptedShape = nullable(struct<Accepted>({ round: natural, view: viewShape }));

type Group = World<Views["state"]>;

const inside = ({ alive, state }: Group): NodeId[] => alive.filter((node) => isInside(state(node), node));

export const declarations: Pick<Protocol<Views>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view"> = {
  shapes: {
    message: {
      prepare: { view: viewShape, round: natural },
      promise: {
        base: natural,
        round: natural,
        accepted: acceptedShape,
        incarnation: natural,
        wants: boolean,
        received: nullable(counts),
      },
      refuse: { base: natural, promised: natural },
      fill: { base: natural, round: natural, cut: counts, holders: counts },
      filled: { base: natural, round: natural },
      propose: { round: natural, view: viewShape },
      accept: { base: natural, round: natural },
      decided: { view: viewShape },
      wish: { base: natural, incarnation: natural, wants: boolean },
    },
    command: {
      suspect: { node: natural },
      restore: { node: natural },
      join: {},
      leave: {},
      flushed: { round: natural, received: counts },
      filled: { round: natural },
    },
    record: {
      register: { incarnation: natural, promised: natural, accepted: acceptedShape, view: viewShape },
    },
  },
  source: "Birman & Joseph, SOSP 1987; Lamport, Paxos Made Simple, 2001",
  assumes: [
    "crash-recovery nodes with a journal",
    "for liveness: a majority alive that can reach each other, in the end with round trips below roundMs",
  ],
  properties: [
    {
      name: "agreement on views",
      claim: "no two nodes know different views by one number",
      when: "always",
      holds: ({ alive, state }) => {
        const known = new Map<number, string>();
        return alive.every((node) => {
          const { view } = state(node);
          const said = JSON.stringify([view.members, view.cut]);
          if (!known.has(view.number)) known.set(view.number, said);
          return known.get(view.number) === said;
        });
      },
    },
    {
      name: "nobody is in the group unasked",
      claim: "no view has a life of a node that has not begun",
      when: "always",
      holds: ({ alive, state }) =>
        alive.every((node) =>
          state(node).view.members.every(
            (member) => !alive.includes(member.node) || member.incarnation <= state(member.node).incarnation,
          ),
        ),
    },
    {
      name: "the group is whoever would be in it",
      claim: "in the end all alive nodes that want to be in the group are in the same view, and nobody else is",
      when: "eventually",
      holds: (world) => {
        const { alive, state } = world;
        const willing = alive.filter((node) => state(node).wants);
        return (
          inside(world).join() === willing.join() &&
          willing.every((node) => nodesOf(state(node).view).join() === willing.join()) &&
          new Set(willing.map((node) => state(node).view.number)).size <= 1
        );
      },
    },
    {
      name: "nobody stays silent",
      claim: "a node that has been silenced for a change of the view comes to speak again, in the group or out of it",
      when: "leadsTo",
      given: ({ state }, node) => state(node).isBlocked,
      holds: ({ state }, node) => !state(node).isBlocked,
    },
  ],
  costs: [{ when: "a change in which all answer and nobody lacks a message", messages: (nodes) => 5 * (nodes - 1) }],
  view: (state, self) => ({
    role: !isInside(state, self) ? "outside" : state.isBlocked ? "changing" : "inside",
    term: state.view.number,
  }),
};
