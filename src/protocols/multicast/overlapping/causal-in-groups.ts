/**
 * Causal multicast for overlapping groups: happened-before goes across groups, so each message carries a vector for every
 * group, and a node in several waits in all of them.
 * Birman, Schiper & Stephenson, "Lightweight Causal and Atomic Group Multicast", ACM TOCS 1991, on several groups.
 *
 * Assumes   no crashes; reliable links, in any order; closed groups whose members stay the same.
 * Safety    C5: if multicast(g, m) → multicast(h, m′), every node that delivers m′ and is in g has delivered m before.
 * Liveness  validity, and agreement within each group.
 * Cost      as many messages as the group has other members, each with a counter for every member of every group.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { list, natural, text } from "../../../core/shape.ts";
import { MAX_PAYLOAD_BYTES } from "../parts/group.ts";
import { heldIds } from "../parts/held.ts";
import { MAX_MEMBERS } from "../parts/layers.ts";
import { type GroupMulticast, type GroupsOptions, groupsGiven, isMember, MAX_GROUPS } from "./groups.ts";

export type CausalInGroups = {
  state: {
    /** For each group V: of each member in their order, how many of its messages to the group have been delivered here. */
    vectors: number[][];
    heldBack: Message[];
  };
  message: { type: "multicast"; group: number; vectors: number[][]; payload: string };
  command: GroupMulticast["command"];
  event: GroupMulticast["event"];
};

type Message = { from: NodeId; group: number; vectors: number[][]; payload: string };
type State = CausalInGroups["state"];
type Ctx = Context<CausalInGroups>;

export function causalInGroups(given?: Partial<GroupsOptions>): Protocol<CausalInGroups> {
  const groups = groupsGiven(given, "causal");

  const countOf = (vectors: readonly (readonly number[])[], group: number, node: NodeId): number =>
    vectors[group]?.[groups[group]?.indexOf(node) ?? -1] ?? 0;
  const numberOf = ({ from, group, vectors }: Message): number => countOf(vectors, group, from);

  /** In the message's group it is its sender's next; of what its sender knew in any group of this node nothing is missing. */
  const isNext = (state: State, message: Message, self: NodeId): boolean =>
    groups.every((members, group) => {
      if (!members.includes(self)) return true;
      return members.every((member) => {
        const [needed, here] = [countOf(message.vectors, group, member), countOf(state.vectors, group, member)];
        return group === message.group && member === message.from ? needed === here + 1 : needed <= here;
      });
    });

  const isKnown = (state: State, message: Message): boolean =>
    numberOf(message) <= countOf(state.vectors, message.group, message.from) ||
    state.heldBack.some(
      (held) => held.from === message.from && held.group === message.group && numberOf(held) === numberOf(message),
    );

  /** Of the groups that this node is not in, it learns by what it delivers, to pass it on. */
  function deliver(state: State, message: Message, ctx: Ctx): void {
    const { from, group, vectors, payload } = message;
    state.vectors = state.vectors.map((vector, g) => vector.map((count, k) => Math.max(count, vectors[g]?.[k] ?? 0)));
    ctx.emit({
      type: "delivered",
      from,
      payload,
      id: `${from}.${numberOf({ from, group, vectors, payload })}@${group}`,
    });
  }

  return {
    name: "causal",
    init: () => ({ vectors: groups.map((members) => members.map(() => 0)), heldBack: [] }),
    receive: {
      multicast(state, from, { group, vectors, payload }, ctx) {
        const received = { from, group, vectors, payload };
        if (isKnown(state, received)) return; // A duplicate.
        state.heldBack.push(received);
        for (let next = state.heldBack.find((held) => isNext(state, held, ctx.self)); next !== undefined; ) {
          deliver(state, next, ctx);
          state.heldBack.splice(state.heldBack.indexOf(next), 1);
          next = state.heldBack.find((held) => isNext(state, held, ctx.self));
        }
      },
    },
    command: {
      send(state, { payload, group }, ctx) {
        if (!isMember(groups, group, ctx.self)) return;
        const members = groups[group] ?? [];
        const vectors = state.vectors.map((vector, g) =>
          vector.map((count, k) => (g === group && members[k] === ctx.self ? count + 1 : count)),
        );
        for (const member of members)
          if (member !== ctx.self) ctx.send(member, { type: "multicast", group, vectors, payload });
        deliver(state, { from: ctx.self, group, vectors, payload }, ctx);
      },
    },
    shapes: {
      message: {
        multicast: {
          group: natural,
          vectors: list(list(natural, MAX_MEMBERS), MAX_GROUPS),
          payload: text(MAX_PAYLOAD_BYTES),
        },
      },
      command: { send: { payload: text(MAX_PAYLOAD_BYTES), group: natural } },
    },
    source: "Birman, Schiper & Stephenson, ACM TOCS 1991",
    assumes: ["no crashes", "reliable links", "closed groups"],
    properties: [],
    costs: [{ when: "one multicast to a group of N", messages: (nodes) => nodes - 1 }],
    view: ({ heldBack }) => ({
      role: heldBack.length > 0 ? "holding back" : "up to date",
      held: heldIds(heldBack, (message) => `${message.from}.${numberOf(message)}@${message.group}`),
    }),
  };
}
