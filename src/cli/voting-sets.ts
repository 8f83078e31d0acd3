/** `coterie voting-sets`: creates Maekawa's voting sets for a number of nodes, or checks given sets. */
import type { Command } from "commander";
import { UsageError, unexpected } from "../core/errors.ts";
import { type VotingSets, votingSets, votingSetsProblem } from "../protocols/index.ts";
import { contentOf } from "./files.ts";
import { type Manual, withManual } from "./manual.ts";
import { wholeNumber } from "./options.ts";
import { ExitWith, type Invocation, type Output } from "./output.ts";

export function declare(command: Command, { stdout }: Invocation): void {
  withManual(command, manual)
    .description(
      "Makes voting sets, or checks existing ones: each node is in its own set, any two sets overlap, all sets have the same size K, and each node is in K sets.",
    )
    .argument("[nodes]", "number of nodes, with ids from 0", wholeNumber("the number of nodes", 1, MAX_VOTERS))
    .option("--file <file>", "check the sets in this JSON file, which has a list of ids for each node")
    .option("--json", "print the answer as JSON")
    .action((nodes: number | undefined, options: Options) => run(nodes, options, stdout));
}

const manual: Manual = {
  examples: ["coterie voting-sets 7", "coterie voting-sets --file sets.json", "coterie voting-sets 13 --json"],
  exitCodes: "0 the four conditions hold; 1 one of them does not hold; 2 invalid arguments",
  details: `The file lists, for each node in order, the ids in its set: \`[[0,1],[1,2],[2,0]]\`.

With \`--json\`: \`{ "nodes", "size", "sets": [[id, …], …], "problem": null | text }\`.`,
};

interface Options {
  readonly file?: string;
  readonly json?: true;
}

function run(nodes: number | undefined, { file, json }: Options, stdout: Output): void {
  if ((nodes === undefined) === (file === undefined))
    throw new UsageError("bad-argument", "expected either a number of nodes, such as 7, or --file");
  const answer = judgedSets(
    file === undefined
      ? (nodes as number)
      : readSets(contentOf(file, "--file", "bad-argument", "a JSON file that can be read"), file),
  );
  stdout.write(`${json === true ? JSON.stringify(answer) : text(answer)}\n`);
  if (answer.problem !== null) throw new ExitWith(1);
}

function text({ sets, size, problem }: JudgedSets): string {
  const lines = sets.map((set, node) => `${node}: ${set.join(" ")}`);
  const verdict = problem ?? `the four conditions hold: any two sets overlap, K = M = ${size}`;
  return [...lines, verdict].join("\n");
}

/** The maximum number of nodes. */
export const MAX_VOTERS = 1_000;

/** Voting sets with their properties. */
export interface JudgedSets {
  readonly nodes: number;
  readonly size: number;
  readonly sets: VotingSets;
  /** The condition that does not hold, and the sets that violate it. Null if all four conditions hold. */
  readonly problem: string | null;
}

/** @param sets the sets, or the number of nodes to create them for */
export function judgedSets(sets: number | VotingSets): JudgedSets {
  const made = typeof sets === "number" ? votingSets(sets) : sets;
  return { nodes: made.length, size: made[0]?.length ?? 0, sets: made, problem: votingSetsProblem(made) };
}

/**
 * @param place the source of the text, for error messages
 * @throws UsageError for anything other than a list of lists of ids
 */
export function readSets(text: string, place: string): VotingSets {
  const sets = parsed(text, place);
  const isId = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  const areSets = Array.isArray(sets) && sets.every((set) => Array.isArray(set) && set.every(isId));
  if (!areSets || sets.length === 0 || sets.length > MAX_VOTERS)
    throw new UsageError(
      "bad-argument",
      `expected ${place} to contain 1 to ${MAX_VOTERS} lists of ids, such as [[0,1],[1,2],[2,0]]`,
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
