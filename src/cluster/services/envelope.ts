/** The messages between members. They belong to the failure detector, the replicated service or a channel. */
import type { Tagged } from "../../core/protocol.ts";
import { boolean, evolving, type Shape, type Shapes, text, type UNKNOWN_VARIANT, variants } from "../../core/shape.ts";
import type { AnyProtocol } from "../../protocols/entry.ts";
import { channelStacks } from "../../protocols/multicast/family/channels.ts";
import { STATE_MACHINE_VERSION } from "../../protocols/service/coordination-service/operations.ts";
import { MAX_NAME_BYTES } from "./instance-name.ts";

/** A message between members. */
export type Envelope =
  | { type: "detector"; body: Tagged }
  | { type: "channel"; name: string; content: Content }
  /** Whether the sender's readers of a channel keep up. `isFull` means that they do not. */
  | { type: "pressure"; name: string; isFull: boolean }
  | ServiceEnvelope;

/** A message for the replicated service. */
export interface ServiceEnvelope {
  readonly type: "service";
  content: Content;
}

/** `type` is the name of the algorithm. If this release does not know that algorithm, the body cannot be decoded. */
export type Content = { type: string; body: Tagged } | { type: typeof UNKNOWN_VARIANT };

/** A message for a channel. Every such message carries the channel's name. */
export type ChannelEnvelope = Extract<Envelope, { type: "channel" | "pressure" }>;

const name = text(MAX_NAME_BYTES);

export const messageShape = ({ shapes }: AnyProtocol): Shape<Tagged> =>
  variants((shapes.message ?? {}) as Shapes<Tagged>);

export const envelopeShape = (detector: AnyProtocol, service: AnyProtocol): Shape<Envelope> =>
  variants<Envelope>({
    detector: { body: messageShape(detector) },
    channel: { name, content: channelShape() },
    pressure: { name, isFull: boolean },
    service: {
      content: evolving<{ type: string; body: Tagged }>({ [serviceContent(service)]: { body: messageShape(service) } }),
    },
  });

/** Cached, since computing it requires the shapes of all stacks. It is the same for all members in a process. */
let ofChannels: Shape<Content> | null = null;
function channelShape(): Shape<Content> {
  const contents = Object.values(channelStacks).map(
    ({ algorithm, make }) => [algorithm, { body: messageShape(make() as AnyProtocol) }] as const,
  );
  ofChannels ??= evolving<{ type: string; body: Tagged }>(Object.fromEntries(contents));
  return ofChannels;
}

/**
 * Returns the type of the service's messages. It includes the version of the state machine, which the shapes do not
 * reveal.
 */
export const serviceContent = ({ name: service }: AnyProtocol): string => `${service}/${STATE_MACHINE_VERSION}`;

/** Returns the message's type for metrics. */
export const typeOf = (envelope: Envelope): string => {
  if ("content" in envelope) {
    const { type, content } = envelope;
    return "body" in content ? `${type}.${content.type}.${content.body.type}` : `${type}.${content.type}`;
  }
  return "body" in envelope ? `${envelope.type}.${envelope.body.type}` : envelope.type;
};
