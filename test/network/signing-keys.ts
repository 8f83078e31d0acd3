/** Creates fresh Ed25519 keys for each node. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import type { NodeId, Signatures } from "../../src/core/protocol.ts";
import { ed25519 } from "../../src/runtime/signatures.ts";

export function newKeys(of: readonly NodeId[]): (self: NodeId) => Signatures {
  const pairs = new Map(of.map((node) => [node, generateKeyPairSync("ed25519")]));
  const all = new Map([...pairs].map(([node, { publicKey }]) => [node, publicKey]));
  return (self) => ed25519({ own: (pairs.get(self) as { privateKey: KeyObject }).privateKey, all });
}
