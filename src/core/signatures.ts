/**
 * Signed values. A node can forward a value that another node signed, and the receiver can verify who signed it and
 * that it has not been changed. So a Byzantine node that forwards it can withhold the value but cannot alter it. The
 * signature covers the canonical text of the value, its signer and a name that distinguishes it from other values of
 * the same shape.
 */
import { InvariantViolation } from "./errors.ts";
import { canonical, hash } from "./plain.ts";
import type { Context, NodeId, Signatures } from "./protocol.ts";
import { natural, problem, type Shape, text } from "./shape.ts";

/** A value, the node that signed it, and the signature. */
export interface Signed<T> {
  /** The node that claims to have signed it. Verify the claim with `isGenuine`. */
  by: NodeId;
  /** The value that was signed. */
  value: T;
  /** The signature, as text of at most 128 bytes. */
  signature: string;
}

/**
 * Returns the shape of a signed value.
 *
 * @param name the meaning of the value, such as `vote`. A value that was signed under a different name is not genuine.
 */
export const signed = <T>(name: string, value: Shape<T>): Shape<Signed<T>> => ({
  kind: "struct",
  fields: { by: natural, value, signature: text(128) },
  signs: name,
});

/** The context fields that `sign` needs. */
export type Signer = Pick<Context<never>, "self" | "signatures">;

/** Signs a value as this node. @throws InvariantViolation if the value does not have the shape */
export function sign<T>({ self, signatures }: Signer, shape: Shape<Signed<T>>, value: T): Signed<T> {
  const wrong = valueProblem(shape, value);
  if (wrong !== null) throw new InvariantViolation("bad-signing", wrong);
  return { by: self, value, signature: signatures.sign(textOf(shape, self, value)) };
}

/** Returns whether the node `by` signed exactly this value. */
export function isGenuine<T>(
  { signatures }: Omit<Signer, "self">,
  shape: Shape<Signed<T>>,
  { by, value, signature }: Signed<T>,
): boolean {
  return valueProblem(shape, value) === null && signatures.isSigned(by, textOf(shape, by, value), signature);
}

type SignedShape = Extract<Shape<unknown>, { kind: "struct" }>;
const textOf = (shape: Shape<unknown>, by: NodeId, value: unknown): string =>
  canonical([(shape as SignedShape).signs, by, value]);
const valueProblem = (shape: Shape<unknown>, value: unknown): string | null =>
  problem((shape as SignedShape).fields.value as Shape<unknown>, value, "the signed value");

/**
 * Returns a node's signing functions for the simulator and the checker. No other code computes such signatures, so a
 * node cannot forge another node's signature.
 */
export const idealSignatures = (self: NodeId): Signatures => ({
  sign: (signedText) => seal(self, signedText),
  isSigned: (by, signedText, signature) => signature === seal(by, signedText),
});
const seal = (by: NodeId, signedText: string): string => hash(["ideal signature", by, signedText]).toString(36);
