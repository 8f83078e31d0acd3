/**
 * Proofs of cheating as files that anyone can verify. A file contains the signed statements and all players' public
 * keys.
 */
import { createPublicKey, type KeyObject } from "node:crypto";
import { UsageError, unexpected } from "../core/errors.ts";
import { isNodeId } from "../core/per-node.ts";
import type { NodeId } from "../core/protocol.ts";
import { problem, text } from "../core/shape.ts";
import { type Verdict, verdictOn } from "../protocols/consensus/lockstep/proofs.ts";
import { type Proof, proofShape } from "../protocols/consensus/lockstep/vocabulary.ts";
import { publicSignatures } from "../runtime/signatures.ts";
import { isFields } from "./fields.ts";

const FORMAT = "coterie proof of cheating";
const VERSION = 1;
const MAX_PLAYERS = 64;
/** The PEM encoding of an Ed25519 key has about 100 characters. */
const pem = text(1_000);
const gameName = text(100);

/** The content of a proof file. */
export interface ProofFile {
  /** The name of the game that the statements belong to. */
  readonly game: string;
  /** Public keys as PEM, keyed by player. */
  readonly keys: Readonly<Record<NodeId, string>>;
  /** The signed statements that convict a player. */
  readonly proof: Proof;
}

/**
 * Encodes a proof file.
 *
 * @param file `keys` are the public keys of all players, as PEM
 * @returns the text of the file, as JSON
 */
export const proofFile = ({ game, keys, proof }: ProofFile): string =>
  `${JSON.stringify({ format: FORMAT, version: VERSION, game, keys, proof }, null, 2)}\n`;

/**
 * Parses a proof file.
 *
 * @throws UsageError `bad-proof` that names the problem
 */
export function readProofFile(content: string): ProofFile {
  let file: unknown;
  try {
    file = JSON.parse(content);
  } catch (error) {
    throw refusal(`expected JSON: ${(error as Error).message.replaceAll(/\s+/g, " ")}`);
  }
  if (!isFields(file)) throw refusal(unexpected("the proof", "an object", file));
  const { format, version, game, keys, proof } = file;
  if (format !== FORMAT) throw refusal(unexpected("format", JSON.stringify(FORMAT), format));
  if (version !== VERSION) throw refusal(unexpected("version", String(VERSION), version));
  const wrong = problem(gameName, game, "game") ?? problem(proofShape, proof, "proof");
  if (wrong !== null) throw refusal(wrong);
  if (!isFields(keys) || !Object.keys(keys).every(isNodeId) || Object.keys(keys).length > MAX_PLAYERS)
    throw refusal(unexpected("keys", `an object with a key for each of at most ${MAX_PLAYERS} players`, keys));
  for (const [player, key] of Object.entries(keys)) {
    const stray = problem(pem, key, `keys.${player}`);
    if (stray !== null) throw refusal(stray);
  }
  return { game: game as string, keys: keys as Record<NodeId, string>, proof: proof as Proof };
}

/**
 * Verifies the statements in a file, using the keys in it.
 *
 * @returns the convicted player and the reason; `culprit` is null if the proof is not conclusive
 * @example
 * const { culprit, why } = verdictOnFile(readProofFile(await readFile("proof.json", "utf8")));
 * @throws UsageError `bad-proof` if a key is invalid
 */
export function verdictOnFile({ game, keys, proof }: ProofFile): Verdict {
  const known = new Map(Object.entries(keys).map(([player, key]) => [Number(player), keyOf(player, key)]));
  return verdictOn(proof, { game, players: [...known.keys()], signatures: publicSignatures(known) });
}

/** Whether two texts are the same public key. */
export const isSameKey = (one: string, other: string): boolean => createPublicKey(one).equals(createPublicKey(other));

function keyOf(player: string, key: string): KeyObject {
  let read: KeyObject;
  try {
    read = createPublicKey(key);
  } catch {
    throw refusal(unexpected(`keys.${player}`, "a public key as PEM", key));
  }
  if (read.asymmetricKeyType === "ed25519") return read;
  throw refusal(unexpected(`keys.${player}`, "an Ed25519 key", read.asymmetricKeyType));
}

const refusal = (message: string): UsageError => new UsageError("bad-proof", message);
