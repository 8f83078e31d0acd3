/**
 * Proofs of cheating. Every party that knows the players and can verify their signatures reaches the same verdict: the
 * players themselves, and `coterie verify-proof`. Nothing else counts as evidence.
 */
import type { PerNode } from "../../../core/per-node.ts";
import type { NodeId, Property, Protocol, Signatures, World } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import type { Shape } from "../../../core/shape.ts";
import { isGenuine, type Signed, sign } from "../../../core/signatures.ts";
import { contexts, withContext } from "../../contexts.ts";
import {
  type Commitment,
  type Ctx,
  commitmentShape,
  complaintShape,
  hashOf,
  type Lockstep,
  type LockstepOptions,
  openingShape,
  type Proof,
  type State,
  shapes,
} from "./vocabulary.ts";

/** The game, its players, and how their signatures are verified. */
export interface Table {
  /** The name of the game. Statements from other games do not count. */
  readonly game: string;
  /** The ids of all players. */
  readonly players: readonly NodeId[];
  /** Verifies the players' signatures. */
  readonly signatures: Signatures;
}

/** The result of a proof: the player that it convicts, and why. The `culprit` is null if it convicts no player. */
export type Verdict =
  | { readonly culprit: NodeId; readonly why: string }
  /** The proof is not conclusive. */
  | { readonly culprit: null; readonly why: string };

/** Verifies a proof. Every party with the same table reaches the same verdict. */
export function verdictOn(proof: Proof, table: Table): Verdict {
  const nothing = (why: string): Verdict => ({ culprit: null, why });
  const doubt = doubtAbout(proof, table);
  if (doubt !== null) return nothing(doubt);
  switch (proof.type) {
    case "wrong-reveal": {
      const { commitment, opening } = proof;
      const { by } = commitment;
      if (by !== opening.by || commitment.value.turn !== opening.value.turn)
        return nothing("the commitment and the revealed action are not from the same player and turn");
      if (hashOf(opening) === commitment.value.hash) return nothing("the revealed action matches its commitment");
      return {
        culprit: by,
        why: `player ${by} revealed an action in turn ${opening.value.turn} that does not match its commitment`,
      };
    }
    case "equivocation": {
      const { one, other } = proof;
      if (one.by !== other.by || one.value.turn !== other.value.turn)
        return nothing("the two commitments are not from the same player and turn");
      if (one.value.hash === other.value.hash) return nothing("the two commitments are identical");
      return { culprit: one.by, why: `player ${one.by} committed to two actions in turn ${one.value.turn}` };
    }
    case "replay": {
      const { commitment, opening } = proof;
      const { by, value } = commitment;
      if (hashOf(opening) !== value.hash) return nothing("the commitment does not match the revealed action");
      if (by === opening.by && value.turn === opening.value.turn) return nothing("the commitment is the player's own");
      return {
        culprit: by,
        why: `player ${by} reused player ${opening.by}'s commitment from turn ${opening.value.turn} in turn ${value.turn}`,
      };
    }
    case "silence": {
      const [first, ...others] = proof.complaints;
      if (first === undefined) return nothing("the proof contains no complaints");
      const { player, turn, due } = first.value;
      if (others.some(({ value }) => value.player !== player || value.turn !== turn || value.due !== due))
        return nothing("the complaints are not about the same player, turn and message");
      const witnesses = new Set(proof.complaints.map(({ by }) => by).filter((by) => by !== player)).size;
      const needed = majority(table.players.length);
      if (witnesses < needed)
        return nothing(
          `expected complaints from at least ${needed} of ${table.players.length} players, got ${witnesses}`,
        );
      return {
        culprit: player,
        why: `${witnesses} players did not receive the ${due} from player ${player} in turn ${turn}`,
      };
    }
  }
}

/** Returns why a part of the proof is not valid. Null if all parts are valid. */
function doubtAbout(proof: Proof, table: Table): string | null {
  switch (proof.type) {
    case "equivocation":
      return strange(proof.one, commitmentShape, table) ?? strange(proof.other, commitmentShape, table);
    case "silence": {
      const stray = proof.complaints.find(({ value }) => !table.players.includes(value.player));
      if (stray !== undefined) return `node ${stray.value.player} is not a player`;
      return proof.complaints.map((each) => strange(each, complaintShape, table)).find((why) => why !== null) ?? null;
    }
    default:
      return strange(proof.commitment, commitmentShape, table) ?? strange(proof.opening, openingShape, table);
  }
}

/** Returns why a statement does not count in this game. Null if it counts. */
export function strange<T extends { game: string }>(
  statement: Signed<T>,
  shape: Shape<Signed<T>>,
  { game, players, signatures }: Table,
): string | null {
  if (!players.includes(statement.by)) return `node ${statement.by} is not a player`;
  if (statement.value.game !== game) return `the statement belongs to the game ${JSON.stringify(statement.value.game)}`;
  return isGenuine({ signatures }, shape, statement) ? null : `the statement is not signed by player ${statement.by}`;
}

// Cheating players for tests and demonstrations, one for each way to cheat. They sign only as themselves. Their memory
// is not part of their state, so do not use them with the checker.

/** The ways to cheat that `cheating()` supports. */
export const cheats = ["look-ahead", "wrong-reveal", "silence", "equivocation", "replay"] as const;
/** A way to cheat. */
export type Cheat = (typeof cheats)[number];

type Message = Lockstep["message"];
/** The memory of a cheating player: the hash of its commitment in the first turn. */
type Memory = { first: string | null };

/** Returns a protocol whose players cheat. @param instead maps an action to one that was not committed to */
export function cheating(
  protocol: Protocol<Lockstep>,
  how: Cheat,
  instead: (action: string) => string,
): Protocol<Lockstep> {
  const change = (ctx: Ctx): Partial<Ctx> => {
    const memory: Memory = { first: null };
    const send = (to: NodeId, message: Message): void => {
      const altered = ways[how](message, to, ctx, memory, instead);
      if (altered !== null) ctx.send(to, altered);
    };
    return {
      send,
      broadcast: (message) => {
        for (const peer of ctx.peers) send(peer, message);
      },
    };
  };
  return withContext(protocol, contexts(change as never)) as Protocol<Lockstep>;
}

type Way = (
  message: Message,
  to: NodeId,
  ctx: Ctx,
  memory: Memory,
  instead: (action: string) => string,
) => Message | null;

const ways: Readonly<Record<Cheat, Way>> = {
  /** Withholds its commitment until it sees the others' actions. */
  "look-ahead": (message) => (message.type === "commit" || message.type === "echo" ? null : message),
  "wrong-reveal": (message, _to, ctx, _memory, instead) => {
    if (message.type !== "reveal" || message.statement.by !== ctx.self) return message;
    const { value } = message.statement;
    const statement = sign(ctx, openingShape, { ...value, action: instead(value.action) });
    return { type: "reveal", statement };
  },
  silence: (message) => (message.type === "reveal" ? null : message),
  equivocation: (message, to, ctx) => {
    if (message.type !== "commit" || message.statement.by !== ctx.self || to === ctx.peers[0]) return message;
    return { type: "commit", statement: another(message.statement, ctx) };
  },
  replay: (message, _to, ctx, memory) => {
    if (message.type !== "commit" || message.statement.by !== ctx.self) return message;
    const { value } = message.statement;
    memory.first ??= value.hash;
    return { type: "commit", statement: sign(ctx, commitmentShape, { ...value, hash: memory.first }) };
  },
};

function another({ by, value }: Signed<Commitment>, ctx: Ctx): Signed<Commitment> {
  const { game, turn } = value;
  const hash = hashOf({ by, value: { game, turn, nonce: "another", action: "another" } });
  return sign(ctx, commitmentShape, { game, turn, hash });
}

/** The results of a player in recent turns, keyed by turn. */
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

/** Returns the commitments that a player has for a turn. Null if it no longer has them or does not have them yet. */
function commitmentsOf(state: State, turn: number): PerNode<Signed<Commitment>> | null {
  if (turn === state.turn) return state.commitments;
  if (turn === state.turn + 1) return state.early;
  return turn === state.turn - 1 ? state.past.commitments : null;
}

function lockstepProperties({ echoes }: LockstepOptions): Property<Lockstep>[] {
  /**
   * Returns whether the other player has no commitment that contradicts the revealing player's commitments. With
   * echoes, it must have all of them.
   */
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
      claim:
        "once a player has revealed its action, no other player accepts commitments that differ from the revealing player's",
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
      claim: "all players that settle a turn have the same actions for it",
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
      claim: "no player settles a turn twice, or after giving it up",
      when: "always",
      history,
      holds: ({ nodes, history: of }: World<State>) =>
        nodes.every((node) => Object.values(of<Ends>(node)).every((ends) => ends.length <= 1)),
    },
    {
      name: "accuracy",
      claim: "no honest live player is convicted",
      when: "always",
      holds: ({ alive, state }: World<State>) =>
        alive.every((node) => alive.every((other: NodeId) => state(node).convicted[other] === undefined)),
    },
    {
      name: "accountability",
      claim: "the game stops only with a proof or a signed complaint",
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
      claim: "every turn that a player has begun is eventually settled or given up",
      when: "quiescent",
      pendingTimers: ["due"],
      holds: ({ alive, state }: World<State>) => alive.every((node) => ["waiting", "over"].includes(state(node).phase)),
    },
  ] as Property<Lockstep>[];
}

type Declared = "shapes" | "source" | "assumes" | "properties" | "costs" | "view";

/** Returns the shapes, source, assumptions, properties and costs. */
export const declarations = (options: LockstepOptions): Pick<Protocol<Lockstep>, Declared> => ({
  shapes,
  source: "Baughman & Levine, INFOCOM 2001, §4",
  assumes: [
    "active players begin each turn at the same time",
    "every expected message arrives within half of its deadline, including retries",
    "unforgeable signatures",
    options.echoes
      ? "at most a minority of Byzantine players"
      : "no player commits to two actions (use echoes if a minority may be Byzantine)",
  ],
  properties: lockstepProperties(options),
  costs: [{ when: "one turn", messages: (nodes) => (options.echoes ? 3 : 2) * nodes * (nodes - 1) }],
  view: ({ phase, turn }) => ({ role: phase, term: turn }),
});
