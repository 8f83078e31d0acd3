/** The members' signing keys. Each member has one PEM file with its private key and another with its public key. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId, Protocol, Signatures, Vocabulary } from "../core/protocol.ts";
import { type ShapeNode, variants } from "../core/shape.ts";
import { ed25519 } from "./signatures.ts";

/** Paths to the key files. `{id}` in a path is replaced with a member's id. */
export interface KeyFiles {
  /** The member's own private key. Keep it secret from everyone else. */
  readonly own: string;
  /** The public keys of all members. */
  readonly all: string;
}

/** Whether the protocol signs anything. If so, its members need keys. */
export const needsKeys = ({ shapes }: Pick<Protocol<Vocabulary>, "shapes">): boolean =>
  hasSigned(variants((shapes.message ?? {}) as never));

function hasSigned(shape: ShapeNode): boolean {
  switch (shape.kind) {
    case "struct":
      return shape.signs !== undefined || Object.values(shape.fields).some(hasSigned);
    case "variants":
    case "evolving":
      return Object.values(shape.variants).some(hasSigned);
    case "list":
      return hasSigned(shape.items);
    case "nullable":
    case "perNode":
      return hasSigned(shape.value);
    default:
      return false;
  }
}

/**
 * Reads the keys that member `self` uses to sign and verify.
 * @throws UsageError if a file is missing, is not an Ed25519 key, or is a different member's key
 */
export function readKeys({ own, all }: KeyFiles, self: NodeId, members: readonly NodeId[]): Signatures {
  const secret = keyIn(own, self, "private");
  const known = new Map(members.map((id) => [id, keyIn(all, id, "public")]));
  const mine = known.get(self);
  if (mine === undefined || !mine.equals(createPublicKey(secret)))
    throw new UsageError(
      "bad-key",
      `expected ${pathOf(own, self)} to be the private key of member ${self}, whose public key is in ${pathOf(all, self)}`,
    );
  return ed25519({ own: secret, all: known });
}

/**
 * Creates a key pair for each member that has none. Existing keys are not replaced, because the journal contains
 * signatures made with them.
 */
export function makeKeys({ own, all }: KeyFiles, members: readonly NodeId[]): void {
  for (const id of members) {
    const [secret, open] = [pathOf(own, id), pathOf(all, id)];
    for (const file of [secret, open]) mkdirSync(dirname(file), { recursive: true });
    if (!existsSync(secret)) {
      const { privateKey } = generateKeyPairSync("ed25519");
      writeWhole(secret, privateKey.export({ type: "pkcs8", format: "pem" }));
    }
    writeWhole(open, createPublicKey(keyIn(own, id, "private")).export({ type: "spki", format: "pem" }));
  }
}

/** Writes the file atomically, so that no reader sees a partial file. Only the owner can read it. */
function writeWhole(file: string, text: string | Buffer): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

const pathOf = (pattern: string, id: NodeId): string => pattern.replaceAll("{id}", String(id));

function keyIn(pattern: string, id: NodeId, kind: "private" | "public"): KeyObject {
  const file = pathOf(pattern, id);
  let key: KeyObject;
  try {
    key = kind === "private" ? createPrivateKey(readFileSync(file)) : createPublicKey(readFileSync(file));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    throw new UsageError("bad-key", `${unexpected(`the ${kind} key of member ${id}`, "a PEM file", file)} (${why})`);
  }
  if (key.asymmetricKeyType === "ed25519") return key;
  throw new UsageError("bad-key", unexpected(`the key in ${file}`, "an Ed25519 key", key.asymmetricKeyType));
}
