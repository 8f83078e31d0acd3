/** What a member asks of what it sends and receives: the kind of an envelope, roughly how large it is, and whether it is of names. */
import { type Envelope, RETIREMENT } from "./algorithms.ts";
import type { NamesEnvelope } from "./name-messages.ts";

const ofNames: Readonly<Record<NamesEnvelope["type"], true>> = {
  open: true,
  refuse: true,
  full: true,
  hello: true,
  ask: true,
};

/** What is said under a name relies on what was said of it before. */
export const isOfNames = (envelope: Envelope): boolean =>
  "content" in envelope ? envelope.content.type === RETIREMENT : Object.hasOwn(ofNames, envelope.type);

export const roughBytes = (envelope: Envelope): number => JSON.stringify(envelope).length;

export const typeOf = (envelope: Envelope): string => {
  if ("content" in envelope) {
    const { type, content } = envelope;
    return "body" in content ? `${type}.${content.type}.${content.body.type}` : `${type}.${content.type}`;
  }
  return "body" in envelope ? `${envelope.type}.${envelope.body.type}` : envelope.type;
};
