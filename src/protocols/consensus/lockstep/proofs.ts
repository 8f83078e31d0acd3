/**
 * Proofs of cheating. All who know the players and can verify their signatures come to the same verdict: the players themselves, and
 * `coterie verify-proof`. Nothing else is believed.
 */
import type { NodeId, Signatures } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import type { Shape } from "../../../core/shape.ts";
import { isGenuine, type Signed } from "../../../core/signatures.ts";
import { commitmentShape, complaintShape, hashOf, openingShape, type Proof } from "./vocabulary.ts";

/** Who plays what, and how signatures are verified. */
export interface Table {
  readonly game: string;
  readonly players: readonly NodeId[];
  readonly signatures: Signatures;
}

export type Verdict =
  | { readonly culprit: NodeId; readonly why: string }
  /** It proves nothing. */
  | { readonly culprit: null; readonly why: string };

export function verdictOn(proof: Proof, table: Table): Verdict {
  const nothing = (why: string): Verdict => ({ culprit: null, why });
  const doubt = doubtAbout(proof, table);
  if (doubt !== null) return nothing(doubt);
  switch (proof.type) {
    case "wrong-reveal": {
      const { commitment, opening } = proof;
      const { by } = commitment;
      if (by !== opening.by || commitment.value.turn !== opening.value.turn)
        return nothing("the commitment and what was revealed are not of the same player and turn");
      if (hashOf(opening) === commitment.value.hash) return nothing("what was revealed is what had been committed to");
      return { culprit: by, why: `player ${by} revealed in turn ${opening.value.turn} what it had not committed to` };
    }
    case "equivocation": {
      const { one, other } = proof;
      if (one.by !== other.by || one.value.turn !== other.value.turn)
        return nothing("the two commitments are not of the same player and turn");
      if (one.value.hash === other.value.hash) return nothing("the two commitments are one");
      return { culprit: one.by, why: `player ${one.by} has committed to two actions in turn ${one.value.turn}` };
    }
    case "replay": {
      const { commitment, opening } = proof;
      const { by, value } = commitment;
      if (hashOf(opening) !== value.hash) return nothing("the commitment is not that of what was revealed");
      if (by === opening.by && value.turn === opening.value.turn) return nothing("the commitment is the player's own");
      return {
        culprit: by,
        why: `player ${by} used in turn ${value.turn} the commitment of player ${opening.by} in turn ${opening.value.turn}`,
      };
    }
    case "silence": {
      const [first, ...others] = proof.complaints;
      if (first === undefined) return nothing("nobody complains");
      const { player, turn, due } = first.value;
      if (others.some(({ value }) => value.player !== player || value.turn !== turn || value.due !== due))
        return nothing("the complaints are not about the same");
      const witnesses = new Set(proof.complaints.map(({ by }) => by).filter((by) => by !== player)).size;
      const needed = majority(table.players.length);
      if (witnesses < needed) return nothing(`${witnesses} of ${table.players.length} players complain, not ${needed}`);
      return {
        culprit: player,
        why: `${witnesses} players did not have the ${due} of player ${player} in turn ${turn}`,
      };
    }
  }
}

/** What is wrong with what a proof is made of. */
function doubtAbout(proof: Proof, table: Table): string | null {
  switch (proof.type) {
    case "equivocation":
      return strange(proof.one, commitmentShape, table) ?? strange(proof.other, commitmentShape, table);
    case "silence": {
      const stray = proof.complaints.find(({ value }) => !table.players.includes(value.player));
      if (stray !== undefined) return `node ${stray.value.player} is no player`;
      return proof.complaints.map((each) => strange(each, complaintShape, table)).find((why) => why !== null) ?? null;
    }
    default:
      return strange(proof.commitment, commitmentShape, table) ?? strange(proof.opening, openingShape, table);
  }
}

/** Why a statement counts for nothing at this table; null if it counts. */
export function strange<T extends { game: string }>(
  statement: Signed<T>,
  shape: Shape<Signed<T>>,
  { game, players, signatures }: Table,
): string | null {
  if (!players.includes(statement.by)) return `node ${statement.by} is no player`;
  if (statement.value.game !== game) return `it is of the game ${JSON.stringify(statement.value.game)}`;
  return isGenuine({ signatures }, shape, statement) ? null : `player ${statement.by} has not signed it`;
}
