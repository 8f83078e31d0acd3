/** What a member counts of what it sends and receives: the kind of an envelope, and roughly how large it is. */
import type { Envelope } from "./algorithms.ts";

export const roughBytes = (envelope: Envelope): number => JSON.stringify(envelope).length;

export const typeOf = (envelope: Envelope): string => {
  if ("content" in envelope) {
    const { type, content } = envelope;
    return "body" in content ? `${type}.${content.type}.${content.body.type}` : `${type}.${content.type}`;
  }
  return "body" in envelope ? `${envelope.type}.${envelope.body.type}` : envelope.type;
};
