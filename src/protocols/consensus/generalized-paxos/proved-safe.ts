/** What may have been chosen in earlier rounds: the paper's ProvedSafe. Whatever a coordinator asks for has to extend it. */

import { isEarlier, isSameRound } from "../parts/ballots.ts";
import type { Quorums } from "../parts/fast-quorums.ts";
import { common, type History } from "./histories.ts";
import type { Interferes } from "./interference.ts";
import { isFast, type Vote } from "./vocabulary.ts";

/**
 * @param promises of the acceptors of Q: what they have voted for last; null if they have not voted.
 * @param nodes how many acceptors there are.
 */
export function provedSafe(
  promises: readonly (Vote | null)[],
  nodes: number,
  quorums: Quorums,
  interferes: Interferes,
): History {
  const voted = promises.filter((vote) => vote !== null);
  const [first] = voted;
  if (first === undefined) return [];
  const k = voted.reduce((highest, { round }) => (isEarlier(highest, round) ? round : highest), first.round);
  const inK = voted.filter(({ round }) => isSameRound(round, k)).map(({ history }) => history);
  // A k-quorum R has at least so many acceptors in Q. What they have in common, R may have chosen.
  const least = (isFast(k) ? quorums.fast : quorums.classic) + promises.length - nodes;
  // No k-quorum can have voted as a whole: nothing was chosen in k, and all that was before stands in each of its histories.
  if (inK.length < least) return inK[0] as History;
  return common(inK, least, interferes);
}
