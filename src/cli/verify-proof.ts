/** `coterie verify-proof`: whether a proof of cheating convicts somebody, for anybody who has the players' public keys. */
import type { Command } from "commander";
import { isSameKey, type ProofFile, readProofFile, verdictOnFile } from "../cluster/proof-file.ts";
import { InvariantViolation, UsageError } from "../core/errors.ts";
import { docsPage } from "../runtime/docs-page.ts";
import { contentOf } from "./files.ts";
import { type Invocation, type Output, print, styled } from "./output.ts";

interface Options {
  readonly keys?: string;
  readonly json?: true;
}

export function declare(command: Command, { stdout }: Invocation): void {
  command
    .description("Verifies a proof that a player of a lockstep game has cheated: signatures, hashes, and what follows.")
    .argument("<file>", "the proof, as JSON")
    .option("--keys <pattern>", "the players' public keys, as PEM files; {id} stands for a player's id")
    .option("--json", "print the verdict as JSON")
    .addHelpText("after", EXPLANATION)
    .action((file: string, options: Options) => verify(file, options, stdout));
}

const EXPLANATION = `
Example:
  $ coterie verify-proof proof.json --keys 'keys/{id}.pub'

The file names the players, their public keys, the game, and what was signed: two commitments of one turn, a commitment and
a reveal that does not fit, or the complaints of a majority. See ${docsPage("learn/protocols/lockstep.md")}
Whoever writes the file chooses the keys in it: --keys compares them with those that you got from the players.

With --json: { "verdict": "proved" | "not proved", "culprit": id | null, "how", "why", "game", "keysCompared" }
Exit codes: 0 it proves that the culprit has cheated; 1 it proves nothing; 2 wrong arguments, or a file that is no proof.`;

function verify(file: string, options: Options, stdout: Output): void {
  const proof = inFile(file, () => readProofFile(contentOf(file, "the proof", "bad-proof")));
  const { culprit, why } = inFile(file, () => verdictOnFile(proof));
  if (options.keys !== undefined) compareKeys(proof, options.keys);
  const { game } = proof;
  const verdict = culprit === null ? "not proved" : "proved";
  const keysCompared = options.keys !== undefined;
  const mark = culprit === null ? styled("red", "✗ not proved") : styled("green", "✓ proved");
  const keys = keysCompared ? [] : ["  by the keys in the file: --keys compares them with yours"];
  const json = { verdict, culprit, how: proof.proof.type, why, game, keysCompared };
  print({ json, sections: [[`${mark}  ${why} (game ${JSON.stringify(game)})`, ...keys]] }, options, stdout);
  if (culprit === null) throw new InvariantViolation("not-proved", `the file proves nothing: ${why}`);
}

/** @throws UsageError where the file has another key than the one that is known. */
function compareKeys({ keys }: ProofFile, pattern: string): void {
  for (const [player, key] of Object.entries(keys)) {
    const path = pattern.replaceAll("{id}", player);
    const known = contentOf(path, `the public key of player ${player}`, "bad-proof");
    if (!inFile(path, () => isSame(known, key)))
      throw new UsageError("bad-proof", `expected the key of player ${player} to be the one in ${path}, got another`);
  }
}

function isSame(known: string, key: string): boolean {
  try {
    return isSameKey(known, key);
  } catch {
    throw new UsageError("bad-key", "expected a public key as PEM");
  }
}

/** What is wrong with a file, with its name. */
function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof UsageError && !error.message.includes(file))
      throw new UsageError(error.code, `${file}: ${error.message}`);
    throw error;
  }
}
