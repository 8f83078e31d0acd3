/**
 * Signatures that one process makes and others verify: Ed25519, with the node's own private key and the public keys of
 * all nodes.
 */
import { type KeyObject, sign, verify } from "node:crypto";
import { UsageError } from "../core/errors.ts";
import type { NodeId, Signatures } from "../core/protocol.ts";

export interface Keys {
  readonly own: KeyObject;
  readonly all: ReadonlyMap<NodeId, KeyObject>;
}

/** Returns a `Signatures` for a verifier, which has the public keys but cannot sign. */
export const publicSignatures = (all: Keys["all"]): Signatures => ({
  sign() {
    throw new UsageError("no-keys", "expected a private key to sign with, got none");
  },
  isSigned: (by, text, signature) => isSignedBy(all.get(by), text, signature),
});

const isSignedBy = (key: KeyObject | undefined, text: string, signature: string): boolean =>
  key !== undefined && verify(null, Buffer.from(text), key, Buffer.from(signature, "base64"));

/** Returns a `Signatures` that signs and verifies with these keys. */
export function ed25519({ own, all }: Keys): Signatures {
  return {
    sign: (text) => sign(null, Buffer.from(text), own).toString("base64"),
    isSigned: (by, text, signature) => isSignedBy(all.get(by), text, signature),
  };
}
