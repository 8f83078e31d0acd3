/**
 * Signed values. What a node has signed it can pass on to others, who see that it is from that node and unchanged: so a liar
 * in between can keep it back, and cannot alter it. What is signed is the canonical text of the value, which has the shape
 * that was declared, under a name that tells it from other values of the same shape.
 */
import { InvariantViolation } from "./errors.ts";
import { canonical, hash } from "./plain.ts";
import type { Context, NodeId, Signatures } from "./protocol.ts";
import { natural, problem, type Shape, text } from "./shape.ts";

export interface Signed<T> {
  by: NodeId;
  value: T;
  signature: string;
}

/** @param name what it means, such as `vote`: a value that was signed under another name does not count. */
export const signed = <T>(name: string, value: Shape<T>): Shape<Signed<T>> => ({
  kind: "struct",
  fields: { by: natural, value, signature: text(128) },
  signs: name,
});

export type Signer = Pick<Context<never>, "self" | "signatures">;

/** @throws InvariantViolation for a value that has not the shape. */
export function sign<T>({ self, signatures }: Signer, shape: Shape<Signed<T>>, value: T): Signed<T> {
  const wrong = valueProblem(shape, value);
  if (wrong !== null) throw new InvariantViolation("bad-signing", wrong);
  return { by: self, value, signature: signatures.sign(textOf(shape, self, value)) };
}

/** Whether the node that is named has signed just this. */
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
  problem((shape as SignedShape).fields.value as Shape<unknown>, value, "what is signed");

/** For simulator and checker. Nobody else computes these, so a signature is somebody's own or one that was seen. */
export const idealSignatures = (self: NodeId): Signatures => ({
  sign: (signedText) => seal(self, signedText),
  isSigned: (by, signedText, signature) => signature === seal(by, signedText),
});
const seal = (by: NodeId, signedText: string): string => hash(["ideal signature", by, signedText]).toString(36);
