/** Signatures between processes: Ed25519, with the node's own private key and the public keys of all nodes. */
import { type KeyObject, sign, verify } from "node:crypto";
import { UsageError } from "../core/errors.ts";
import type { NodeId, Signatures } from "../core/protocol.ts";

export interface Keys {
  readonly own: KeyObject;
  readonly all: ReadonlyMap<NodeId, KeyObject>;
}

/** For a verifier that has the public keys and signs nothing. */
export const publicSignatures = (all: Keys["all"]): Signatures => ({
  sign() {
    throw new UsageError("no-keys", "expected a private key to sign with, and got none");
  },
  isSigned: (by, text, signature) => isSignedBy(all.get(by), text, signature),
});

const isSignedBy = (key: KeyObject | undefined, text: string, signature: string): boolean =>
  key !== undefined && verify(null, Buffer.from(text), key, Buffer.from(signature, "base64"));

export function ed25519({ own, all }: Keys): Signatures {
  return {
    sign: (text) => sign(null, Buffer.from(text), own).toString("base64"),
    isSigned: (by, text, signature) => isSignedBy(all.get(by), text, signature),
  };
}
