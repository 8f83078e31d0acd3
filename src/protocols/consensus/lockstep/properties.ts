/** What lockstep turns promise to those who play by the rules. */
import type { PerNode } from "../../../core/per-node.ts";
import type { NodeId, Property, World } from "../../../core/protocol.ts";
import type { Signed } from "../../../core/signatures.ts";
import type { Commitment, Lockstep, LockstepOptions, State } from "./vocabulary.ts";

/** Of the last turns: what a player made of each. */
type Ends = Readonly<Record<number, readonly string[]>>;
const REMEMBERED = 4;
const GIVEN_UP = "given up";

const history = {
  empty: {} as Ends,
  after(before: Ends, event: Lockstep["event"]): Ends {
    if (event.type === "cheated") return before;
    const end = event.type === "decided" ? event.value : GIVEN_UP;
    const ends = { ...before, [event.turn]: [...(before[event.turn] ?? []), end] };
    return Object.fromEntries(Object.entries(ends).slice(-REMEMBERED));
  },
};

/** What it holds of that turn; null if it knows that turn no more, or not yet. */
function commitmentsOf(state: State, turn: number): PerNode<Signed<Commitment>> | null {
  if (turn === state.turn) return state.commitments;
  if (turn === state.turn + 1) return state.early;
  return turn === state.turn - 1 ? state.past.commitments : null;
}

export function lockstepProperties({ echoes }: LockstepOptions): Property<Lockstep>[] {
  /** Whether the other holds no other commitments than the one that has revealed its action; with echoes, all of them. */
  function isBound(own: State, other: State): boolean {
    const known = commitmentsOf(other, own.turn);
    if (known === null) return true;
    return Object.entries(own.commitments).every(([player, { value }]) => {
      const held = known[Number(player)];
      return held === undefined ? !echoes : held.value.hash === value.hash;
    });
  }
  return [
    {
      name: "no look-ahead",
      claim: "once a player has revealed its action, no other action can be committed to before anybody",
      when: "always",
      holds: ({ alive, state }: World<State>) =>
        alive.every((node) => {
          const own = state(node);
          const hasRevealed = own.openings[node] !== undefined;
          return !hasRevealed || alive.every((other) => isBound(own, state(other)));
        }),
    },
    {
      name: "agreement",
      claim: "players that settle a turn have the same actions",
      when: "always",
      history,
      holds: ({ nodes, history: of }: World<State>) => {
        const settled = new Map<string, string>();
        return nodes.every((node) =>
          Object.entries(of<Ends>(node)).every(([turn, ends]) =>
            ends
              .filter((end) => end !== GIVEN_UP)
              .every((end) => {
                const before = settled.get(turn) ?? end;
                settled.set(turn, before);
                return before === end;
              }),
          ),
        );
      },
    },
    {
      name: "deadlines",
      claim: "nobody settles a turn twice, or after it has given it up",
      when: "always",
      history,
      holds: ({ nodes, history: of }: World<State>) =>
        nodes.every((node) => Object.values(of<Ends>(node)).every((ends) => ends.length <= 1)),
    },
    {
      name: "accuracy",
      claim: "no honest player that is up is convicted",
      when: "always",
      holds: ({ alive, state }: World<State>) =>
        alive.every((node) => alive.every((other: NodeId) => state(node).convicted[other] === undefined)),
    },
    {
      name: "accountability",
      claim: "play stops only with a proof, or with a complaint that somebody has signed",
      when: "quiescent",
      pendingTimers: ["due"],
      holds: ({ alive, state }: World<State>) =>
        alive.every((node) => {
          const { phase, convicted, stopped } = state(node);
          return phase !== "over" || Object.keys(convicted).length + Object.keys(stopped).length > 0;
        }),
    },
    {
      name: "termination",
      claim: "every turn that a player has begun is settled or given up",
      when: "quiescent",
      pendingTimers: ["due"],
      holds: ({ alive, state }: World<State>) => alive.every((node) => ["waiting", "over"].includes(state(node).phase)),
    },
  ] as Property<Lockstep>[];
}
