/** `coterie voting-sets`: Maekawa's voting sets for so many nodes, or the check of sets that somebody has made. */
import type { Command } from "commander";
import { InvariantViolation, UsageError } from "../core/errors.ts";
import { type JudgedSets, judgedSets, MAX_VOTERS, readSets } from "../experiment/voting-sets.ts";
import { contentOf } from "./files.ts";
import { wholeNumber } from "./options.ts";
import type { Invocation, Output } from "./output.ts";

export function declare(command: Command, { stdout }: Invocation): void {
  command
    .description(
      "Makes voting sets for so many nodes, or checks given ones: each node is in its own set, any two sets meet, all sets are of one size K, each node is in K sets.",
    )
    .argument("[nodes]", "how many nodes, with ids from 0", wholeNumber("the number of nodes", 1, MAX_VOTERS))
    .option("--file <file>", "check these sets: JSON, for each node in order the ids in its set")
    .option("--json", "print the answer as JSON")
    .addHelpText("after", EXPLANATION)
    .action((nodes: number | undefined, options: Options) => run(nodes, options, stdout));
}

const EXPLANATION = `
Example:
  $ coterie voting-sets 7
  $ echo '[[0,1],[1,2],[2,0]]' > sets.json && coterie voting-sets --file sets.json

With --json: { "nodes", "size", "sets": [[id, …], …], "problem": null | text }
Exit codes: 0 the four conditions hold; 1 one does not, and which; 2 wrong arguments.`;

interface Options {
  readonly file?: string;
  readonly json?: true;
}

function run(nodes: number | undefined, { file, json }: Options, stdout: Output): void {
  if ((nodes === undefined) === (file === undefined))
    throw new UsageError("bad-argument", "expected either a number of nodes, such as 7, or --file with sets to check");
  const answer = judgedSets(
    file === undefined
      ? (nodes as number)
      : readSets(contentOf(file, "--file", "bad-argument", "a JSON file that can be read"), file),
  );
  stdout.write(`${json === true ? JSON.stringify(answer) : text(answer)}\n`);
  if (answer.problem !== null) throw new InvariantViolation("violated", `these are no voting sets: ${answer.problem}`);
}

function text({ sets, size, problem }: JudgedSets): string {
  const lines = sets.map((set, node) => `${node}: ${set.join(" ")}`);
  const verdict = problem ?? `the four conditions hold: any two sets meet, K = M = ${size}`;
  return [...lines, verdict].join("\n");
}
