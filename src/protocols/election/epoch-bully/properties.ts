/** What epoch-bully says of itself: the shapes of what it sends and journals, its claims, its costs, its picture. */
import type { NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { boolean, natural, nullable, real, struct } from "../../../core/shape.ts";
import { type EpochBully, leaderOf, type Pledge } from "./vocabulary.ts";

type State = EpochBully["state"];
type Declarations = Pick<Protocol<EpochBully>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view">;

const pledge = struct<Pledge>({ epoch: natural, to: natural });

export const declarations = (takesOver: boolean): Declarations => ({
  shapes: {
    message: {
      election: { promised: natural, released: nullable(pledge), rank: real },
      answer: { promised: natural, boundTo: nullable(natural), isAbove: boolean },
      requestVote: { epoch: natural, released: nullable(pledge) },
      voteGranted: { epoch: natural },
      coordinator: { epoch: natural, round: natural, rank: real },
      confirm: { epoch: natural, round: natural },
      displace: { epoch: natural, rank: real },
      resign: { epoch: natural, successor: nullable(natural) },
    },
    command: {
      call: {},
      suspect: { node: natural },
      restore: { node: natural },
      resign: {},
      stand: {},
      rank: { rank: real },
    },
    record: { promised: { epoch: natural, to: natural } },
  },
  source: "García-Molina, IEEE ToC 1982; hardened as by Lamport 2001, Gray & Cheriton 1989, Ongaro 2014",
  assumes: [
    "crash-recovery nodes with a journal",
    "for one leader at a time: clocks within the margin, no pauses",
    "for liveness: a majority alive, reliable links and bounded delay in the end",
  ],
  properties: [oneLeaderPerEpoch, epochsGrow, oneLeaderAtATime, agreement, ...(takesOver ? [preference] : [])],
  costs: [
    { when: "one undisturbed election", messages: (nodes) => 6 * (nodes - 1) },
    { when: "one round of renewals", messages: (nodes) => 2 * (nodes - 1) },
  ],
  view: (state, self) => ({ role: roleOf(state), leader: leaderOf(state, self), term: state.promised.epoch }),
});

const roles = {
  following: "follower",
  preVoting: "pre-voting",
  displacing: "displacing",
  requestingVotes: "requesting votes",
  leading: "leader",
} as const;

function roleOf({ phase, isCandidate }: State): string {
  if (!isCandidate && phase.is !== "leading") return "not a candidate";
  return roles[phase.is];
}

const oneLeaderPerEpoch: Property<EpochBully> = {
  name: "one leader per epoch",
  claim: "nobody leads, has led or is known to have led an epoch that another leads",
  when: "always",
  holds({ alive, state }) {
    const leaders = new Map<number, NodeId>();
    return alive.every((node) => {
      const { term } = state(node);
      if (term === null) return true;
      const known = leaders.get(term.epoch) ?? term.leader;
      leaders.set(term.epoch, known);
      return known === term.leader;
    });
  },
};

const epochsGrow: Property<EpochBully> = {
  name: "epochs grow",
  claim: "nobody knows of a leader of an epoch above the one that it has promised last",
  when: "always",
  holds: ({ alive, state }) => alive.every((node) => (state(node).term?.epoch ?? 0) <= state(node).promised.epoch),
};

const oneLeaderAtATime: Property<EpochBully> = {
  name: "one leader at a time",
  claim: "no two nodes lead, whatever the delays, if clocks keep to the margin and nobody is paused",
  when: "always",
  holds: (world) => leadersOf(world).length <= 1,
};

const agreement: Property<EpochBully> = {
  name: "E2 liveness",
  claim: "in the end one node leads and all alive follow it, if a majority is alive and somebody stands",
  when: "eventually",
  holds(world) {
    const { alive, state } = world;
    const mayLead = alive.length > 0 && alive.length >= state(alive[0] as NodeId).quorum;
    if (!mayLead || !alive.some((node) => state(node).isCandidate)) return true;
    const [leader] = leadersOf(world);
    return leader !== undefined && alive.every((node) => leaderOf(state(node), node) === leader);
  },
};

const preference: Property<EpochBully> = {
  name: "E1 preference",
  claim: "in the end nobody that stands outranks the leader",
  when: "eventually",
  holds: (world) =>
    leadersOf(world).every((leader) => {
      const { rank } = world.state(leader);
      return world.alive.every((node) => {
        const other = world.state(node);
        return !other.isCandidate || other.rank < rank || (other.rank === rank && node <= leader);
      });
    }),
};

const leadersOf = ({ alive, state }: World<State>): NodeId[] =>
  alive.filter((node) => state(node).phase.is === "leading");
