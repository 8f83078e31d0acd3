/** A member's links to the other members: TCP, datagrams if the member uses multicast, and messages to resend. */
import { canonical } from "../../core/plain.ts";
import type { NodeId } from "../../core/protocol.ts";
import { MAX_LISTED } from "../../core/quorums.ts";
import type { Shape } from "../../core/shape.ts";
import { type FaultInjector, faultInjector } from "../../runtime/fault-injector.ts";
import type { HostPort } from "../../runtime/host-port.ts";
import { type Counts, count } from "../../runtime/metrics.ts";
import { limitsWith } from "../../runtime/transport/limits.ts";
import { type SendResult, type TcpOptions, type TcpTransport, tcpTransport } from "../../runtime/transport/tcp.ts";
import { type UdpMulticast, type UdpOptions, udpMulticast } from "../../runtime/transport/udp-multicast.ts";
import type { LossReason, MessageId } from "../../trace/entry.ts";
import { transportPlaces } from "../config.ts";
import type { Transport } from "./channel-api.ts";
import { type Bounds, boundsWithin } from "./channel-text.ts";
import { type Envelope, typeOf } from "./envelope.ts";
import type { MemberTrace } from "./member-trace.ts";
import type { Membership } from "./membership.ts";
import type { RefusalNotes } from "./refusal-notes.ts";
import { Resending } from "./resending.ts";
import { UNSENT } from "./unrecorded.ts";

/** The size of a link's queue at which channels stop sending to that member. */
const FULL_LINK_BYTES = 1024 * 1024;

export interface LinksOptions {
  readonly membership: Membership;
  readonly counts: Counts;
  readonly trace: MemberTrace;
  readonly notes: RefusalNotes;
  readonly shape: Shape<Envelope>;
  deliver(from: NodeId, envelope: Envelope, by: Transport, id: () => MessageId): void;
  /** Called when another member has connected, with its address. */
  onCaller(node: NodeId, address: HostPort): void;
  /** Whether the member is suspected. Senders do not wait for a full link to a suspected member. */
  isSuspected(member: NodeId): boolean;
  onFatal(error: Error): void;
}

/** The options that both transports share. */
type Ways = Omit<TcpOptions<Envelope>, "members" | "deliver" | "limits" | "identity" | "tls">;

export class MemberLinks {
  readonly #options: LinksOptions;
  readonly injector: FaultInjector;
  readonly tcp: TcpTransport<Envelope>;
  /** The UDP transport. Null if this member does not use multicast. */
  readonly #udp: UdpMulticast<Envelope> | null;
  readonly #resending: Resending<Envelope>;

  constructor(options: LinksOptions) {
    this.#options = options;
    const { platform } = options.membership;
    this.injector = faultInjector(platform.random);
    this.#resending = new Resending({
      platform,
      send: (to, envelope) => this.send(to, envelope),
      onOverflow: (to) => options.notes.overflow(to),
    });
    const ways = this.#ways();
    this.tcp = this.#linking(ways);
    this.#udp = this.#multicasting(ways);
  }

  /** @throws EnvironmentError if an address is in use */
  async open(): Promise<void> {
    await this.tcp.open();
    await this.#udp?.open();
  }

  /** Stops resending and receiving datagrams. `tcp.close()` closes TCP. */
  stop(): void {
    this.#resending.close();
    this.#udp?.close();
  }

  get multicasts(): boolean {
    return this.#udp !== null;
  }

  send(to: NodeId, envelope: Envelope): SendResult {
    const { counts, trace } = this.#options;
    count(counts.messagesSent, typeOf(envelope));
    const result = this.tcp.hasPeer(to) ? this.tcp.send(to, envelope) : UNSENT;
    trace.sent(to, envelope, result);
    return result;
  }

  /** Sends a message, and retries until the link accepts it. */
  insist(to: NodeId, envelope: Envelope): SendResult {
    return this.#resending.insist(to, envelope);
  }

  multicast(to: readonly NodeId[], envelope: Envelope, transport: Transport): void {
    if (transport === "tcp" || this.#udp === null) {
      for (const member of to) this.send(member, envelope);
      return;
    }
    const { counts, trace } = this.#options;
    count(counts.messagesSent, typeOf(envelope));
    const resultOf = this.#udp.send(envelope, to);
    if (trace.wanted) for (const member of to) trace.sent(member, envelope, resultOf(member));
  }

  /** Returns the size limits for one message on a channel. */
  bounds(transport: Transport): Bounds {
    const { limits, members } = this.#options.membership.config;
    const datagramBytes = transport === "udp" ? this.#udp?.payloadBytes : undefined;
    return boundsWithin(limitsWith(limits).maxFrameBytes, Object.keys(members).length, datagramBytes);
  }

  hasRoom(members: readonly NodeId[]): boolean {
    return this.tcp.peers.every(({ id, queuedBytes }) => {
      if (!members.includes(id)) return true;
      return (queuedBytes < FULL_LINK_BYTES || this.#options.isSuspected(id)) && !this.#resending.isFull(id);
    });
  }

  #ways(): Ways {
    const { membership, counts, trace, shape, onFatal } = this.#options;
    const { platform, id, config, timing, log } = membership;
    return {
      platform,
      cluster: config.cluster,
      self: id,
      protocol: canonical(["services", timing]),
      shape,
      injector: this.injector,
      counts,
      log,
      onLost: (to: NodeId, ids: () => readonly MessageId[], why: LossReason) => trace.lost(to, ids, why),
      onFatal,
    };
  }

  #linking(ways: Ways): TcpTransport<Envelope> {
    const { membership, deliver, onCaller } = this.#options;
    const { id, config, identity, tls } = membership;
    return tcpTransport<Envelope>({
      ...ways,
      deliver: (from, envelope, messageId) => deliver(from, envelope, "tcp", messageId),
      outlives: ({ type }) => type === "channel", // A view identifies the incarnation that a message is meant for.
      ...transportPlaces(id, config),
      maxPeers: MAX_LISTED,
      onCaller,
      identity,
      tls,
    });
  }

  #multicasting(ways: Omit<UdpOptions<Envelope>, "members" | "place" | "deliver" | "fallback" | "linked">) {
    const { membership, notes, deliver } = this.#options;
    if (membership.multicast === null) return null;
    return udpMulticast<Envelope>({
      ...ways,
      members: membership.founders,
      place: membership.multicast,
      deliver: (from, envelope, messageId) => {
        if (envelope.type === "channel") deliver(from, envelope, "udp", messageId);
        else notes.datagram(from, envelope);
      },
      fallback: (to, envelope) => this.tcp.send(to, envelope),
      linked: () => this.tcp.peers.flatMap(({ id, link }) => (link === "open" ? [id] : [])),
    });
  }
}
