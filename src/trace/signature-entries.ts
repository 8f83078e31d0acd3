/**
 * Signatures in a recording of real processes. A replay has no keys: a signature that was made stands there as a
 * choice, and so does one that was found to be wrong; those that are not mentioned were right.
 */
import { hash } from "../core/plain.ts";
import type { NodeId } from "../core/protocol.ts";

export const SIGNATURE = "signature";
export const WRONG_SIGNATURE = "wrong signature";

/** Tells one value that was looked at from another. */
export const signatureName = (by: NodeId, signedText: string, signature: string): string =>
  hash([by, signedText, signature]).toString(36);
