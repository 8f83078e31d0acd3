/** The messages between members: of the failure detector, the replicated service and channels. */
import type { Tagged } from "../../core/protocol.ts";
import { boolean, evolving, type Shape, type Shapes, text, type UNKNOWN_VARIANT, variants } from "../../core/shape.ts";
import type { AnyProtocol } from "../../protocols/entry.ts";
import { channelStacks } from "../../protocols/multicast/family/channels.ts";
import { STATE_MACHINE_VERSION } from "../../protocols/service/coordination-service/operations.ts";
import { MAX_NAME_BYTES } from "./instance-name.ts";

export type Envelope =
  | { type: "detector"; body: Tagged }
  | { type: "channel"; name: string; content: Content }
  /** Whether readers of a channel keep up at the sender. */
  | { type: "pressure"; name: string; isFull: boolean }
  | ServiceEnvelope;

export interface ServiceEnvelope {
  readonly type: "service";
  content: Content;
}

/** `type` is the name of the algorithm; if this release does not know it, the body cannot be decoded. */
export type Content = { type: string; body: Tagged } | { type: typeof UNKNOWN_VARIANT };

/** A message of a channel; every message has the channel's name. */
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

/** Cached, since it needs all stacks and is the same for all members of a process. */
let ofChannels: Shape<Content> | null = null;
function channelShape(): Shape<Content> {
  const contents = Object.values(channelStacks).map(
    ({ algorithm, make }) => [algorithm, { body: messageShape(make() as AnyProtocol) }] as const,
  );
  ofChannels ??= evolving<{ type: string; body: Tagged }>(Object.fromEntries(contents));
  return ofChannels;
}

/** The type of the service's messages. It includes the version of the state machine, which their shape does not show. */
export const serviceContent = ({ name: service }: AnyProtocol): string => `${service}/${STATE_MACHINE_VERSION}`;

/** The message's type, for metrics. */
export const typeOf = (envelope: Envelope): string => {
  if ("content" in envelope) {
    const { type, content } = envelope;
    return "body" in content ? `${type}.${content.type}.${content.body.type}` : `${type}.${content.type}`;
  }
  return "body" in envelope ? `${envelope.type}.${envelope.body.type}` : envelope.type;
};
