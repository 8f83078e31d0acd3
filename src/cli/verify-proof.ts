/** `coterie verify-proof`: verifies a proof of cheating with the players' public keys. */
import type { Command } from "commander";
import { isSameKey, type ProofFile, readProofFile, verdictOnFile } from "../cluster/proof-file.ts";
import { UsageError } from "../core/errors.ts";
import { contentOf } from "./files.ts";
import { type Manual, withManual } from "./manual.ts";
import { ExitWith, type Invocation, type Output, print, styled } from "./output.ts";

interface Options {
  readonly keys?: string;
  readonly json?: true;
}

export function declare(command: Command, { stdout }: Invocation): void {
  withManual(command, manual)
    .description("Verifies a proof that a player of a lockstep game cheated: its signatures, hashes and conclusion.")
    .argument("<file>", "file with the proof, as JSON")
    .option("--keys <pattern>", "the players' public keys, as PEM files; {id} is replaced by a player's id")
    .option("--json", "print the verdict as JSON")
    .action((file: string, options: Options) => verify(file, options, stdout));
}

const manual: Manual = {
  examples: ["coterie verify-proof proof.json --keys 'keys/{id}.pub'", "coterie verify-proof proof.json --json"],
  exitCodes:
    "0 the proof shows that the culprit cheated; 1 it proves nothing; 2 invalid arguments, or the file is not a proof",
  details: `The file contains the players, their public keys, the game, and the signed evidence: two commitments for the same turn, a commitment
and a reveal that do not match, or complaints from a majority. See [lockstep](../learn/protocols/lockstep.md).

The author of the file chooses the keys in it. \`--keys\` compares those keys with the ones that you got from the players.

With \`--json\`: \`{ "verdict": "proved" | "not proved", "culprit": id | null, "how", "why", "game", "keysCompared" }\`.`,
};

function verify(file: string, options: Options, stdout: Output): void {
  const proof = inFile(file, () => readProofFile(contentOf(file, "the proof", "bad-proof")));
  const { culprit, why } = inFile(file, () => verdictOnFile(proof));
  if (options.keys !== undefined) compareKeys(proof, options.keys);
  const { game } = proof;
  const verdict = culprit === null ? "not proved" : "proved";
  const keysCompared = options.keys !== undefined;
  const mark = culprit === null ? styled("red", "✗ not proved") : styled("green", "✓ proved");
  const keys = keysCompared ? [] : ["  checked with the keys in the file; use --keys to compare them with your own"];
  const json = { verdict, culprit, how: proof.proof.type, why, game, keysCompared };
  print({ json, sections: [[`${mark}  ${why} (game ${JSON.stringify(game)})`, ...keys]] }, options, stdout);
  if (culprit === null) throw new ExitWith(1);
}

/** @throws UsageError if the file contains a different key than the known one */
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

/** Adds the name of the file to an error. */
function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof UsageError && !error.message.includes(file))
      throw new UsageError(error.code, `${file}: ${error.message}`);
    throw error;
  }
}
