/**
 * "Picking a Value in Phase 2a": the rule by which a coordinator, or an acceptor that recovers by itself, finds what may have been
 * chosen in an earlier round. The paper's variables stand beside it.
 */
import { isEarlier, isSameRound } from "../parts/ballots.ts";
import type { Quorums } from "../parts/fast-quorums.ts";
import { isFast, isSameValue, type Value, type Vote } from "./vocabulary.ts";

/** `free`: no value has been or might yet be chosen in an earlier round, so any that was proposed will do. */
export type Pick = { is: "value"; value: Value } | { is: "free" };

/**
 * @param promises of the acceptors of Q, a quorum of the round that is begun: vr(a) and vv(a); null if a has not voted.
 * @param nodes how many acceptors there are.
 */
export function pick(promises: readonly (Vote | null)[], nodes: number, quorums: Quorums): Pick {
  const voted = promises.filter((vote) => vote !== null);
  const [first] = voted;
  if (first === undefined) return { is: "free" }; // k = 0.
  const k = voted.reduce((highest, { round }) => (isEarlier(highest, round) ? round : highest), first.round);
  const inK = voted.filter(({ round }) => isSameRound(round, k));
  const V = distinct(inK.map(({ value }) => value));
  if (V.length === 1) return { is: "value", value: V[0] as Value };
  // O4(v): some k-quorum R might have chosen v, since all acceptors of R ∩ Q have voted for v in k. Those outside Q may have, too.
  const outside = nodes - promises.length;
  const size = isFast(k) ? quorums.fast : quorums.classic;
  const O4 = (v: Value): boolean => inK.filter(({ value }) => isSameValue(value, v)).length + outside >= size;
  const v = V.filter(O4);
  return v.length > 0 ? { is: "value", value: v[0] as Value } : { is: "free" };
}

const distinct = (values: readonly Value[]): Value[] =>
  values.filter((value, at) => values.findIndex((other) => isSameValue(other, value)) === at);

/** Where it is free, everybody takes the same of what has been voted for: the command of the lowest client. */
export function lowest(values: readonly Value[]): Value {
  const [first = null, ...others] = values;
  return others.reduce((least, value) => (precedes(value, least) ? value : least), first);
}

function precedes(a: Value, b: Value): boolean {
  if (a === null || b === null) return b === null && a !== null;
  return a.client < b.client || (a.client === b.client && a.sequence < b.sequence);
}
