/** A proof of cheating as a file that anyone can verify: the signed statements, and the public keys of all players. */
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
/** The PEM of an Ed25519 key has about a hundred characters. */
const pem = text(1_000);
const gameName = text(100);

/** The content of a proof file. */
export interface ProofFile {
  readonly game: string;
  /** Public keys as PEM, by player. */
  readonly keys: Readonly<Record<NodeId, string>>;
  readonly proof: Proof;
}

/** Writes a proof file. @param keys the public keys of all players, as PEM */
export const proofFile = ({ game, keys, proof }: ProofFile): string =>
  `${JSON.stringify({ format: FORMAT, version: VERSION, game, keys, proof }, null, 2)}\n`;

/** Reads a proof file. @throws UsageError that names the problem. */
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
    throw refusal(unexpected("keys", `an object with the key of each of at most ${MAX_PLAYERS} players`, keys));
  for (const [player, key] of Object.entries(keys)) {
    const stray = problem(pem, key, `keys.${player}`);
    if (stray !== null) throw refusal(stray);
  }
  return { game: game as string, keys: keys as Record<NodeId, string>, proof: proof as Proof };
}

/** Verifies the statements in a file with the keys in it. @throws UsageError if a key is invalid */
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
