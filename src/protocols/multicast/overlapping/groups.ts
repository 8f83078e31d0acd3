/** Multicasts for overlapping groups. A node may be in several groups, and multicasts each message to one of them. */
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

/** The interface of a multicast for overlapping groups. `send` names the group. */
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
      if (!areSets) refuse("groups", "groups without duplicate members");
    },
  );

export type GroupsOptions = OptionsOf<ReturnType<typeof groupsOptions>>;

/**
 * Returns the given groups, with members in ascending order.
 * @throws UsageError if there are none, or a group lists a member twice.
 */
export function groupsGiven(given: Partial<GroupsOptions> | undefined, owner: string): NodeId[][] {
  const { groups } = groupsOptions(owner).settle(given);
  return groups.map((members) => members.toSorted((a, b) => a - b));
}

/** Whether a node is in a group. Groups are closed, so only members multicast to a group. */
const isMember = (groups: readonly (readonly NodeId[])[], group: number, node: NodeId): boolean =>
  groups[group]?.includes(node) === true;

// One multicast per group: a node runs one independent instance for each of its groups. The guarantees therefore hold
// only within each group, which is sufficient for FIFO order.

// Parts are looked up by name. The surrounding types keep callers type-safe.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** `id` identifies a message by its id within the group and by the group, as in `0.1@2`. */
type EachGroup = GroupMulticast & { state: Record<string, object>; message: { type: string; body: object } };

const partOf = (group: number): string => `group ${group}`;

/** Runs an order separately in each group. */
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
  // The properties come from the workload. An instance's own properties would cover all nodes.
  return { ...layer, properties: [] };
}

/** Restricts a protocol to the given nodes. Other nodes have no peers. */
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

// Causal multicast for overlapping groups: happened-before crosses groups, so each message carries a vector for every
// group, and a node waits for causes in all of its own groups. Birman, Schiper & Stephenson, "Lightweight Causal and
// Atomic Group Multicast", ACM TOCS 1991, for several groups.
//
// Assumes   no crashes; reliable links, in any order; closed groups with fixed members.
// Safety    C5: if multicast(g, m) → multicast(h, m′), every node in g that delivers m′ has already delivered m.
// Liveness  validity, and agreement within each group.
// Cost      one message to each other member of the group, with a counter for every member of every group.

type CausalInGroups = {
  state: {
    /**
     * For each group, V: the number of messages to the group from each member, in member order, that this node has
     * delivered.
     */
    vectors: number[][];
    heldBack: Message[];
  };
  message: { type: "multicast"; group: number; vectors: number[][]; payload: string };
  command: GroupMulticast["command"];
  event: GroupMulticast["event"];
};

type Message = { from: NodeId; group: number; vectors: number[][]; payload: string };
type State = CausalInGroups["state"];

/** Creates causal multicast in overlapping groups. @throws UsageError if an option is unknown or out of range. */
export function causalInGroups(given?: Partial<GroupsOptions>): Protocol<CausalInGroups> {
  const groups = groupsGiven(given, "causal");

  const countOf = (vectors: readonly (readonly number[])[], group: number, node: NodeId): number =>
    vectors[group]?.[groups[group]?.indexOf(node) ?? -1] ?? 0;
  const numberOf = ({ from, group, vectors }: Message): number => countOf(vectors, group, from);

  /**
   * Whether the message is its sender's next in the group, and this node lacks none of the messages in its own groups
   * that the sender knew.
   */
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

  /** Delivers a message. Also merges the counters for other groups, to pass them on. */
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

// Reliable multicast over IP multicast for overlapping groups: in each of its groups g, node p counts its own messages
// (S_g^p) and the messages received from each member q (R_g^q). Coulouris et al. §15.4.2. Each group repairs losses and
// frees messages independently of the others, which is sufficient for FIFO order.

/** Creates ip-multicast in overlapping groups. */
export const ipMulticastInGroups = (given?: Partial<GroupsOptions>): Protocol<EachGroup> =>
  eachGroup(() => ipMulticast(evenly), given);

// Total order by agreement for overlapping groups: the members of a message's group propose positions and receive the
// agreed one. A node has a single queue, and a single pair of numbers A and P, for all its groups. Birman & Joseph, ACM
// TOCS 1987; Coulouris et al. §15.4.3, for overlapping groups.
//
// Assumes   no crashes; reliable links, in any order; closed groups with fixed members.
// Safety    C6, pairwise: any two nodes deliver the messages that they have in common in the same order, across all
//           groups.
// Liveness  validity, and agreement within each group.
// Cost      3(N − 1) messages per multicast to a group of N.

type IsisInGroups = {
  state: {
    isis: Isis["state"];
    /** The group of each of this node's messages, in order of message numbers, starting at 1. */
    sentTo: number[];
  };
  message: Isis["message"];
  command: GroupMulticast["command"];
  event: GroupMulticast["event"];
};

type Ctx = Context<IsisInGroups>;

/** Runs the unchanged algorithm, but its multicasts go to the message's group. */
export function isisInGroups(given?: Partial<GroupsOptions>): Protocol<IsisInGroups> {
  const groups = groupsGiven(given, "isis");
  const alone = isis();

  const among = (group: number, ctx: Ctx): Context<Isis> =>
    contexts((outer) => ({
      broadcast(message) {
        for (const member of groups[group] ?? []) if (member !== outer.self) outer.send(member, message);
      },
    }))(ctx) as Context<Isis>;

  /** Casts the context, since both protocols have the same messages and events. */
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
        state.isis.members = [...(groups[group] ?? [])]; // These are the members whose proposals the node needs.
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
        "no node holds a message back forever",
        ({ state }, node) => state(node).isis.heldBack.length === 0,
      ),
    ],
    costs: [{ when: "one multicast to a group of N", messages: (nodes) => 3 * (nodes - 1) }],
    view: (state, self) => alone.view(state.isis, self),
  };
}
