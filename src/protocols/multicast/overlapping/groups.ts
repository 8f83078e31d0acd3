/** Overlapping groups: who is in which. A node may be in several, and multicasts to one of its own. */
import { assemble } from "../../../core/assemble.ts";
import type { Context, NodeId, Protocol, Tagged, Vocabulary } from "../../../core/protocol.ts";
import { list, natural, text } from "../../../core/shape.ts";
import { contexts, withContext } from "../../contexts.ts";
import { type OptionsOf, option, optionTable } from "../../options.ts";
import { ipMulticast } from "../ip-multicast/ip-multicast.ts";
import { evenly } from "../ip-multicast/vocabulary.ts";
import { type Isis, isis } from "../isis.ts";
import { eventually, heldIds, holdBack, MAX_PAYLOAD_BYTES } from "../parts/group.ts";
import { asLayer, MAX_MEMBERS } from "../parts/layers.ts";

/** What a multicast for overlapping groups offers: `send` names the group. */
export interface GroupMulticast extends Vocabulary {
  command: { type: "send"; payload: string; group: number };
  event: { type: "delivered"; from: NodeId; payload: string; id: string };
}

const MAX_GROUPS = 1_000;

const groupsOptions = (owner: string) =>
  optionTable(
    owner,
    {
      groups: option(
        list(list(natural, MAX_MEMBERS), MAX_GROUPS),
        [
          [0, 2],
          [1, 2],
          [0, 1],
        ],
        "the members of each group; the number of a group is its index",
      ),
    },
    ({ groups }, refuse) => {
      const areSets = groups.length > 0 && groups.every((members) => new Set(members).size === members.length);
      if (!areSets) refuse("groups", "groups, each of different nodes");
    },
  );

export type GroupsOptions = OptionsOf<ReturnType<typeof groupsOptions>>;

/** The groups that were given, with ascending members. @throws UsageError where there are none, or a member is named twice. */
export function groupsGiven(given: Partial<GroupsOptions> | undefined, owner: string): NodeId[][] {
  const { groups } = groupsOptions(owner).settle(given);
  return groups.map((members) => members.toSorted((a, b) => a - b));
}

/** Groups are closed: who is in none of that number does not multicast to it. */
const isMember = (groups: readonly (readonly NodeId[])[], group: number, node: NodeId): boolean =>
  groups[group]?.includes(node) === true;

// One multicast for each of several groups: a node runs it once for each group that it is in, and no run knows of the
// others. So what it promises it keeps within each group, and nothing across them: FIFO order asks for no more.

// Inside, parts are looked up by name; the types around keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** `id` names a message by what the run of its group calls it, and the group: `0.1@2`. */
type EachGroup = GroupMulticast & { state: Record<string, object>; message: { type: string; body: object } };

const partOf = (group: number): string => `group ${group}`;

export function eachGroup<M extends Vocabulary>(
  order: () => Protocol<M>,
  given?: Partial<GroupsOptions>,
): Protocol<EachGroup> {
  const { name } = order();
  const groups = groupsGiven(given, name);
  const parts = Object.fromEntries(groups.map((members, group) => [partOf(group), within(members, order() as Any)]));
  const whole = assemble<Any>(name, parts, {}, { face: partOf(0) }) as Any;
  const layer = asLayer<EachGroup>(whole, {
    commands: {
      send: ({ payload, group }: { payload: string; group: number }, self) =>
        isMember(groups, group, self) ? { part: partOf(group), body: { type: "send", payload } as Tagged } : null,
    },
    shapes: { send: { payload: text(MAX_PAYLOAD_BYTES), group: natural } },
    event: (part, body) => ({ ...body, id: `${body.id}@${groups.findIndex((_, group) => partOf(group) === part)}` }),
  });
  return { ...layer, properties: [] }; // Those of its workload: a run's own speak of all nodes.
}

/** The same protocol among some of the nodes. A node that is not among them has nobody to talk to. */
function within(members: readonly NodeId[], order: Protocol<Any>): Protocol<Any> {
  const othersOf = (self: NodeId): NodeId[] =>
    members.includes(self) ? members.filter((member) => member !== self) : [];
  const inside = contexts((ctx) => ({
    peers: othersOf(ctx.self),
    broadcast(message) {
      for (const other of othersOf(ctx.self)) ctx.send(other, message);
    },
  }));
  return { ...withContext(order, inside), init: (self: NodeId) => order.init(self, othersOf(self)) };
}

// Causal multicast for overlapping groups: happened-before goes across groups, so each message carries a vector for every
// group, and a node in several waits in all of them.
// Birman, Schiper & Stephenson, "Lightweight Causal and Atomic Group Multicast", ACM TOCS 1991, on several groups.
//
// Assumes   no crashes; reliable links, in any order; closed groups whose members stay the same.
// Safety    C5: if multicast(g, m) → multicast(h, m′), every node that delivers m′ and is in g has delivered m before.
// Liveness  validity, and agreement within each group.
// Cost      as many messages as the group has other members, each with a counter for every member of every group.

type CausalInGroups = {
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
  function deliver(state: State, message: Message, ctx: Context<CausalInGroups>): void {
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
        holdBack(
          state.heldBack,
          received,
          (held) => isNext(state, held, ctx.self),
          (next) => deliver(state, next, ctx),
        );
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

// Reliable multicast over IP multicast for overlapping groups: in each group g that node p is in it counts S_g^p, its own
// messages to g, and for each member q of g R_g^q, q's messages to g that it has. Coulouris et al. §15.4.2. One group's
// losses are repaired, and its messages freed, whatever becomes of the others; FIFO order asks for no more.

export const ipMulticastInGroups = (given?: Partial<GroupsOptions>): Protocol<EachGroup> =>
  eachGroup(() => ipMulticast(evenly), given);

// Total order by agreement for overlapping groups: the members of a message's group propose for it and are told what is
// agreed; a node has one queue, and one pair of numbers A and P, for all groups that it is in.
// Birman & Joseph, ACM TOCS 1987; Coulouris et al. §15.4.3, on overlapping groups.
//
// Assumes   no crashes; reliable links, in any order; closed groups whose members stay the same.
// Safety    C6, pairwise: two nodes deliver what both deliver in the same order, to whichever groups it was sent.
// Liveness  validity, and agreement within each group.
// Cost      3(N − 1) messages per multicast to a group of N.

type IsisInGroups = {
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
