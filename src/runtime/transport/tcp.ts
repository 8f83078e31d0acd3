/**
 * The TCP transport. It has two connections for every peer: one that this node dials and sends on, and one that the
 * peer dials. With TLS, both ends prove their identity with a certificate.
 */
import { UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { ShapeNode } from "../../core/shape.ts";
import type { LossReason, MessageId } from "../../trace/entry.ts";
import type { PeerStatus } from "../admin-pages.ts";
import { cannotListen } from "../cannot-listen.ts";
import type { FaultInjector } from "../fault-injector.ts";
import { formatHostPort, type HostPort } from "../host-port.ts";
import type { Log } from "../log.ts";
import type { Counts } from "../metrics.ts";
import type { Listener, Platform, TlsMaterial } from "../platform/platform.ts";
import { type Codec, codecOf } from "../wire.ts";
import { Acceptor, certificateName, remoteOf } from "./acceptor.ts";
import { inPlainWords } from "./certificate-flaws.ts";
import { type Hello, MAX_CALL_BACK_BYTES, OLDEST_WIRE_VERSION, protocolHash, WIRE_VERSION } from "./frames.ts";
import type { GroupIdentity } from "./identity.ts";
import { type Limits, limitsWith } from "./limits.ts";
import { OutgoingLink } from "./outgoing-link.ts";

export interface TcpOptions<M> {
  readonly platform: Platform;
  readonly cluster: string;
  readonly self: NodeId;
  readonly members: Readonly<Record<NodeId, HostPort>>;
  /** The address that this member binds. Default: the address at which the other members reach it. */
  readonly listen?: HostPort | undefined;
  /**
   * Text that identifies the protocol and its options. It must be the same for all members; a member with different
   * text is refused.
   */
  readonly protocol: string;
  /** The shape of all messages. */
  readonly shape: ShapeNode;
  /** The maximum number of peers if the member list can change. Default: the initial number. */
  readonly maxPeers?: number;
  /**
   * Called before a new node is admitted, with the address at which it can be dialed. Used if the member list can
   * change.
   */
  readonly onCaller?: (peer: NodeId, address: HostPort) => void;
  readonly limits?: Partial<Limits>;
  readonly tls?: TlsMaterial | null;
  readonly identity: GroupIdentity;
  readonly injector: FaultInjector;
  readonly counts: Counts;
  readonly log: Log;
  readonly deliver: (from: NodeId, message: M, id: () => MessageId) => void;
  /**
   * Whether a message is intended for any run of the peer's process, and therefore survives its crash. Default: false
   * for all messages.
   */
  readonly outlives?: (message: M) => boolean;
  /** Called when messages are lost after they were sent. */
  readonly onLost: (to: NodeId, ids: () => MessageId[], why: LossReason) => void;
  readonly onFatal: (error: Error) => void;
}

/** The result of sending a message: an id that both ends use and, if the message was not sent, the reason. */
export interface SendResult {
  readonly id: () => MessageId;
  readonly lost: LossReason | null;
}

/** The links to all peers. */
export interface TcpTransport<M> {
  /**
   * Listens, then dials the peers. Their host names are resolved on each attempt.
   * @throws EnvironmentError if the address is in use
   */
  open(): Promise<void>;
  /** Resolves once each peer has been dialed once, successfully or not. */
  tried(): Promise<void>;
  send(to: NodeId, message: M): SendResult;
  hasPeer(peer: NodeId): boolean;
  /** Adds a peer or changes its address. If there are several addresses, the first one that answers is used. */
  setPeer(peer: NodeId, address: HostPort, ...others: readonly HostPort[]): void;
  /** Removes a peer. Messages queued for it are lost. */
  removePeer(peer: NodeId): void;
  /**
   * If TLS is on, uses these certificates for new connections. Open connections stay open.
   * @throws UsageError if they are invalid
   */
  renew(tls: TlsMaterial): void;
  readonly address: HostPort;
  readonly peers: readonly PeerStatus[];
  close(): Promise<void>;
}

/** A peer's possible addresses, and the one that was dialed last. */
interface Place {
  readonly addresses: readonly HostPort[];
  used: HostPort;
}

const placeAt = (addresses: readonly HostPort[], used = addresses[0] as HostPort): Place => ({ addresses, used });

const nextOf = ({ addresses, used }: Place): HostPort =>
  addresses[(addresses.indexOf(used) + 1) % addresses.length] as HostPort;

/** The maximum number of message ids that are listed when a queue is lost. */
const MAX_LOST_IDS = 1_000;
/** How long to wait before logging which members a new group is still waiting for. */
const SAY_AWAITED_MS = 2_000;

/** Creates the transport. It neither listens nor dials until `open` is called. */
export function tcpTransport<M>(options: TcpOptions<M>): TcpTransport<M> {
  const { platform, self, counts, log, injector, identity } = options;
  const members = new Map(Object.entries(options.members).map(([id, address]) => [Number(id), placeAt([address])]));
  let { tls = null } = options;
  const own = members.get(self)?.used;
  if (own === undefined)
    throw new UsageError("unknown-node", `expected node ${self} to be among the members, but it is not`);
  const limits: Limits = limitsWith(options.limits ?? {});
  const codec: Codec<M> = codecOf<M>(options.shape);
  const hello = helloOf(options, own);
  const name = (from: NodeId, to: NodeId, incarnation: number, number: number | string): MessageId =>
    `${from}-${to}-${incarnation.toString(36)}-${number}`;
  const links = new Map<NodeId, OutgoingLink<M>>();
  /** The number of the last message sent to each removed peer, since a peer may be added again. */
  const lastTo = new Map<NodeId, number>();
  const peerIds = [...members.keys()].filter((id) => id !== self);
  const acceptor = new Acceptor<M>({
    platform,
    self: hello,
    identity,
    peers: peerIds,
    codec,
    limits,
    counts,
    log,
    deliver: (from, message, number, incarnation) =>
      options.deliver(from, message, () => name(from, self, incarnation, number)),
    onIncarnation: (peer, incarnation) => links.get(peer)?.noteIncarnation(incarnation),
    onCaller: options.onCaller,
    onFatal: options.onFatal,
  });
  let lostCount = 0;

  function linkTo(peer: NodeId): OutgoingLink<M> {
    return new OutgoingLink<M>({
      platform,
      peer,
      after: lastTo.get(peer),
      hello: { ...hello, to: peer },
      identity,
      codec,
      limits,
      injector,
      counts,
      log,
      connect: (onReady, failures) => {
        const proof = tls && { ...tls, name: certificateName(peer) };
        const place = members.get(peer) as Place;
        if (failures > 0) place.used = nextOf(place);
        return platform.network.dial(place.used, proof, onReady);
      },
      outlives: options.outlives,
      onLost: (first, last, why) => options.onLost(peer, () => lostIds(peer, first, last), why),
      onFatal: options.onFatal,
    });
  }

  for (const peer of peerIds) links.set(peer, linkTo(peer));

  function lostIds(peer: NodeId, first: number, last: number): MessageId[] {
    const length = Math.min(last - first + 1, MAX_LOST_IDS);
    return Array.from({ length }, (_, i) => name(self, peer, hello.incarnation, first + i));
  }

  identity.onFounded = () => {
    for (const link of links.values()) link.retry();
  };
  const explaining = platform.timers.after(SAY_AWAITED_MS, () => identity.sayAwaited()).unref();
  // A peer that reconnects may briefly have two connections.
  const maxStreams = 2 * Math.max(peerIds.length, options.maxPeers ?? 0) + limits.maxStrangers;
  const listener = listenerFor(options, limits, maxStreams, acceptor);
  let phase: "new" | "open" | "closed" = "new";

  return {
    async open() {
      await listen(listener, options.listen ?? own);
      phase = "open";
      for (const link of links.values()) link.open();
    },
    async tried() {
      await Promise.all([...links.values()].map((link) => link.tried));
    },
    send(to, message) {
      const link = links.get(to);
      if (link === undefined)
        throw new UsageError(
          "unknown-node",
          `expected a message to one of the nodes ${[...links.keys()].join(", ")}, got one to ${to}`,
        );
      const sent = link.send(message);
      if (sent.lost === null) return { id: () => name(self, to, hello.incarnation, sent.number), lost: null };
      const number = `x${++lostCount}`;
      return { id: () => name(self, to, hello.incarnation, number), lost: sent.lost };
    },
    hasPeer: (peer) => links.has(peer),
    setPeer(peer, ...addresses) {
      const before = members.get(peer)?.used;
      const used = addresses.find(({ host, port }) => host === before?.host && port === before.port);
      members.set(peer, placeAt(addresses, used));
      const known = links.get(peer);
      if (known !== undefined) return used === undefined ? known.redial() : undefined;
      const link = linkTo(peer);
      links.set(peer, link);
      acceptor.addPeer(peer);
      if (phase === "open") link.open();
    },
    removePeer(peer) {
      const link = links.get(peer);
      if (link !== undefined) lastTo.set(peer, link.last);
      link?.close();
      links.delete(peer);
      members.delete(peer);
      acceptor.removePeer(peer);
    },
    renew(material) {
      if (tls === null) return;
      listener.renew(material);
      tls = material;
    },
    address: own,
    get peers() {
      return [...links].map(([id, link]) => {
        const address = formatHostPort((members.get(id) as Place).used);
        return { id, address, link: link.status, queuedBytes: link.queuedBytes };
      });
    },
    async close() {
      phase = "closed";
      platform.timers.cancel(explaining);
      for (const link of links.values()) link.close();
      const closed = listener.close();
      acceptor.close();
      await closed;
    },
  };
}

/** Returns this node's hello, except for its `to` field. */
function helloOf<M>(
  { platform, cluster, protocol, shape, self }: TcpOptions<M>,
  own: HostPort,
): Omit<Hello, "identity"> {
  const address = formatHostPort(own);
  return {
    version: WIRE_VERSION,
    oldest: OLDEST_WIRE_VERSION,
    cluster,
    protocol: protocolHash(protocol, shape),
    from: self,
    to: self,
    address: Buffer.byteLength(address) > MAX_CALL_BACK_BYTES ? "" : address,
    incarnation: platform.clock.wall() * 1_000 + Math.floor(platform.random.fraction() * 1_000),
  };
}

function listenerFor<M>(
  { platform, tls = null, log }: TcpOptions<M>,
  { handshakeTimeoutMs }: Limits,
  maxStreams: number,
  acceptor: Acceptor<M>,
): Listener {
  return platform.network.listener({
    tls,
    maxStreams,
    handshakeTimeoutMs,
    onMade: (stream) => acceptor.meet(stream),
    onReady: (stream, names) => acceptor.accept(stream, names),
    onDropped: (from) =>
      acceptor.note("too-many-strangers", from ?? "somewhere", `${maxStreams} connections are already open`),
    onTlsRefused: (stream, why) => acceptor.note("tls", remoteOf(stream), inPlainWords(why)),
    onError: ({ message }) =>
      log.once("accept", `could not accept a connection: ${message}`, { event: "accept-failed" }),
  });
}

async function listen(listener: Listener, address: HostPort): Promise<void> {
  try {
    await listener.open(address);
  } catch (error) {
    throw cannotListen(address, "", error);
  }
}
