/** Signatures between processes: Ed25519, with a private key of the node's own and the public keys of all. */
import { type KeyObject, sign, verify } from "node:crypto";
import type { NodeId, Signatures } from "../core/protocol.ts";

export interface Keys {
  readonly own: KeyObject;
  readonly all: ReadonlyMap<NodeId, KeyObject>;
}

export function ed25519({ own, all }: Keys): Signatures {
  return {
    sign: (text) => sign(null, Buffer.from(text), own).toString("base64"),
    isSigned(by, text, signature) {
      const key = all.get(by);
      return key !== undefined && verify(null, Buffer.from(text), key, Buffer.from(signature, "base64"));
    },
  };
}
