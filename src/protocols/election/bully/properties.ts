/**
 * The properties, costs and roles of bully election, in the terms of Coulouris et al. §15.3. Both versions use them.
 */
import type { NodeId, Property, TimerOf, Vocabulary, World } from "../../../core/protocol.ts";

interface State {
  phase: "new" | "idle" | "campaigning" | "deferring";
  leader: NodeId | null;
}

interface Electing extends Vocabulary {
  state: State;
}

/** The node that should lead, and the description of it in claims. */
interface Highest<V extends Electing> {
  of(world: World<V["state"]>): NodeId | null;
  readonly words: string;
}

/** Returns the properties of an election that elects the highest node. */
export function bullyProperties<V extends Electing>(
  pendingTimers: readonly TimerOf<V>[],
  highest: Highest<V>,
): Property<V>[] {
  const states = ({ alive, state }: World<V["state"]>): State[] =>
    alive.map(state).filter(({ phase }) => phase !== "new");
  return [
    {
      name: "E1 safety",
      claim: `when idle, no node follows an alive node other than ${highest.words}`,
      when: "quiescent",
      pendingTimers,
      holds: (world) =>
        world.alive.every((node) => {
          const { leader } = world.state(node);
          return leader === null || !world.alive.includes(leader) || leader === highest.of(world);
        }),
    },
    {
      name: "E1 eventually",
      claim: `eventually, every alive node that took part in an election follows ${highest.words}`,
      when: "eventually",
      holds: (world) => states(world).every(({ leader }) => leader === highest.of(world)),
    },
    {
      name: "E2 liveness",
      claim: "when idle, every alive node that took part in an election has a leader, if any node may lead",
      when: "quiescent",
      pendingTimers,
      holds: (world) => highest.of(world) === null || states(world).every(({ leader }) => leader !== null),
    },
    {
      name: "E2 termination",
      claim: "every election terminates",
      when: "leadsTo",
      given: ({ state }, node) => isElecting(state(node)),
      holds: ({ state }, node) => !isElecting(state(node)),
    },
  ];
}

/** Whether the node is taking part in an election. */
export const isElecting = ({ phase }: Pick<State, "phase">): boolean =>
  phase === "campaigning" || phase === "deferring";

/** The costs stated in the textbook. */
export const bullyCosts = [
  { when: "the second-highest node detects the crash of the highest", messages: (nodes: number) => nodes - 2 },
  {
    when: "the lowest node starts the election after the highest crashed",
    messages: (nodes: number) => nodes * nodes - nodes - 1,
  },
];

/** Returns the node's role, for display. */
export function bullyRole({ phase, leader }: State, self: NodeId): string {
  if (leader === self) return "leader";
  if (phase !== "idle") return phase;
  return leader === null ? "idle" : "follower";
}
