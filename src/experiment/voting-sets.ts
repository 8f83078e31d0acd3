/** Maekawa's voting sets, made for so many nodes or read from JSON, and whether they are any. */
import { UsageError, unexpected } from "../core/errors.ts";
import { type VotingSets, votingSets, votingSetsProblem } from "../protocols/index.ts";

export const MAX_VOTERS = 1_000;

export interface JudgedSets {
  readonly nodes: number;
  readonly size: number;
  readonly sets: VotingSets;
  /** Which of the four conditions does not hold, and where; null if all do. */
  readonly problem: string | null;
}

/** @param sets made for that many nodes, where it is a number */
export function judgedSets(sets: number | VotingSets): JudgedSets {
  const made = typeof sets === "number" ? votingSets(sets) : sets;
  return { nodes: made.length, size: made[0]?.length ?? 0, sets: made, problem: votingSetsProblem(made) };
}

/** @param place where the text comes from. @throws UsageError for what is no list of lists of ids */
export function readSets(text: string, place: string): VotingSets {
  const sets = parsed(text, place);
  const isId = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  const areSets = Array.isArray(sets) && sets.every((set) => Array.isArray(set) && set.every(isId));
  if (!areSets || sets.length === 0 || sets.length > MAX_VOTERS)
    throw new UsageError(
      "bad-argument",
      `expected ${place} to hold 1 to ${MAX_VOTERS} lists of ids, such as [[0,1],[1,2],[2,0]]`,
    );
  const stray = sets.flat().find((member) => member >= sets.length);
  if (stray !== undefined)
    throw new UsageError("bad-argument", unexpected("the members", `below ${sets.length}, the number of sets`, stray));
  return sets as VotingSets;
}

function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError("bad-argument", `${unexpected("the sets", "JSON", place)} (${(error as Error).message})`);
  }
}
