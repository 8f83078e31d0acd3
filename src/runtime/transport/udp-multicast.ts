/**
 * IP multicast between the members of a cluster. A multicast message is sent as a single datagram for any number of
 * receivers. Datagrams may be lost, duplicated and reordered; the protocol on top repairs this. Several times a second,
 * each member sends a `hello` that lists the members it receives from. Members that multicast does not reach get
 * messages through a fallback. The log reports when this begins and ends.
 */
import { InvariantViolation, UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { ShapeNode } from "../../core/shape.ts";
import type { LossReason, MessageId } from "../../trace/entry.ts";
import type { FaultInjector } from "../fault-injector.ts";
import type { Log } from "../log.ts";
import { type Counts, count, type RefusedReason } from "../metrics.ts";
import type { DatagramSockets, Datagrams, Platform, Timer } from "../platform/platform.ts";
import { type Codec, codecOf, MalformedBytes, Reader, Writer } from "../wire.ts";
import { protocolHash } from "./frames.ts";
import { defaultLimits } from "./limits.ts";
import type { SendResult } from "./tcp.ts";
import {
  DatagramFormat,
  heardCodec,
  isObjection,
  type Objection,
  type Opened,
  OVERHEAD_BYTES,
  type RunKey,
} from "./udp-datagram.ts";
import { FRAGMENT_EXTRA_BYTES } from "./udp-fragments.ts";
import { UdpOutlet } from "./udp-outlet.ts";
import { UdpPeer } from "./udp-peer.ts";
import { type SettledPlace, settlePlace, type UdpPlace } from "./udp-place.ts";

export interface UdpOptions<M> {
  readonly platform: Platform;
  readonly cluster: string;
  readonly self: NodeId;
  readonly members: readonly NodeId[];
  /** The same text as for `tcpTransport`. A member with different text is rejected. */
  readonly protocol: string;
  readonly shape: ShapeNode;
  readonly place: UdpPlace;
  readonly maxMessageBytes?: number;
  readonly injector: FaultInjector;
  readonly counts: Counts;
  readonly log: Log;
  readonly deliver: (from: NodeId, message: M, id: () => MessageId) => void;
  /** Called when the fault injector has dropped messages to a member. */
  readonly onLost: (to: NodeId, ids: () => MessageId[], why: LossReason) => void;
  /** Sends a message to a member that datagrams do not reach. */
  readonly fallback: (to: NodeId, message: M) => SendResult;
  /**
   * Returns the members that are currently reachable over other links. If datagrams do not reach one of them, they are
   * being blocked somewhere along the way.
   */
  readonly linked: () => readonly NodeId[];
  readonly onFatal: (error: Error) => void;
}

/** Multicast over UDP, with a fallback for members that it does not reach. */
export interface UdpMulticast<M> {
  /**
   * Joins the group. If that fails, the log gives the reason, and all messages use the fallback. Joining is not
   * retried.
   */
  open(): Promise<void>;
  /**
   * Multicasts a message. Returns a function that returns the result for each receiver.
   * @param to the receivers, by default all other members. The datagram also reaches the remaining members, but the
   * fallback is used only for these receivers.
   */
  send(message: M, to?: readonly NodeId[]): (to: NodeId) => SendResult;
  /** The members that datagrams reach. Other members get multicast messages through the fallback. */
  readonly reached: ReadonlySet<NodeId>;
  /** How many bytes of messages one datagram can carry. */
  readonly payloadBytes: number;
  close(): void;
}

/** The interval at which members send a `hello`. */
const HELLO_MS = 250;
/** How long the reply to a `hello` is delayed, so that one reply can cover several hellos. */
const ANSWER_MS = 5;
/** If a peer is found connected over TCP but silent on UDP in this many consecutive checks, this is logged. */
const PATIENCE = 4;
/**
 * A datagram is sent once it reaches this size. It is also sent when all input that arrived together has been handled.
 */
const FULL_BODY_BYTES = 16 * 1024;
/** The upper bound for the numbers that identify runs of a process. */
const RUNS = 2 ** 48 - 1;

/** @throws UsageError if the multicast address, port or interface cannot be used */
export function udpMulticast<M>(options: UdpOptions<M>): UdpMulticast<M> {
  return new Multicasting(options, settlePlace(options.place, options.platform.datagrams));
}

class Multicasting<M> implements UdpMulticast<M> {
  readonly #options: UdpOptions<M>;
  readonly #place: SettledPlace;
  readonly #codec: Codec<M>;
  readonly #format: DatagramFormat;
  readonly #run: number;
  readonly #peers: ReadonlyMap<NodeId, UdpPeer>;
  readonly #maxMessageBytes: number;
  readonly payloadBytes: number;
  #sockets: DatagramSockets | null = null;
  #isClosed = false;
  #beat: Timer | null = null;
  #answer: Timer | null = null;
  readonly #outlet: UdpOutlet;

  /** The number of the last message written. */
  #last = 0;
  /** The body being written, and the number of its first message, or 0 between bodies. */
  readonly #writer = new Writer();
  readonly #scratch = new Writer();
  #first = 0;
  #flushing: Timer | null = null;

  constructor(options: UdpOptions<M>, place: SettledPlace) {
    const { cluster, self, members, protocol, shape, maxMessageBytes = defaultLimits.maxFrameBytes } = options;
    if (!members.includes(self))
      throw new UsageError("unknown-node", `expected node ${self} to be among the members, but it is not`);
    this.#options = options;
    this.#run = options.platform.random.natural(RUNS);
    this.#place = place;
    this.#codec = codecOf<M>(shape);
    this.#format = new DatagramFormat({ cluster, protocol: protocolHash(protocol, shape), key: place.key });
    this.#maxMessageBytes = maxMessageBytes;
    this.payloadBytes = place.maxDatagramBytes - OVERHEAD_BYTES;
    const keyOf = (node: NodeId, run: number): RunKey | null => this.#format.keyOf(node, run);
    const peers = members.filter((member) => member !== self);
    this.#peers = new Map(peers.map((peer) => [peer, new UdpPeer(peer, this.#run, maxMessageBytes, keyOf)]));
    this.#outlet = new UdpOutlet({
      ...{ self, peers, run: this.#run, format: this.#format },
      ...{ injector: options.injector, counts: options.counts, log: options.log },
      timers: options.platform.timers,
      put: (datagram) => this.#sockets?.send(datagram),
    });
  }

  get reached(): ReadonlySet<NodeId> {
    return new Set([...this.#peers.values()].filter(({ isReached }) => isReached).map(({ node }) => node));
  }

  async open(): Promise<void> {
    const { group, port, interface: through } = this.#place;
    const { datagrams, timers } = this.#options.platform;
    try {
      this.#sockets = await (datagrams as Datagrams).open(this.#place, {
        onDatagram: (datagram, address) => this.#receive(datagram, address),
        onUnsent: (error) => this.#outlet.noteUnsent(error),
        onBroken: ({ message }) =>
          this.#options.log.once("multicast", `multicast fails: ${message}`, { event: "multicast-failed" }),
      });
    } catch (error) {
      const why = (error as Error).message;
      const instead = "Messages are sent to each member separately until this member restarts";
      const text = `cannot multicast to ${group}:${port} through ${through}: ${why}. ${instead}`;
      this.#options.log.warn(text, { event: "multicast-failed" });
      return;
    }
    if (this.#isClosed) return this.#sockets.close();
    this.#hello();
    this.#beat = timers.every(HELLO_MS, () => this.#look());
  }

  send(message: M, to: readonly NodeId[] = [...this.#peers.keys()]): (to: NodeId) => SendResult {
    const detours = new Map<NodeId, SendResult>();
    for (const node of to) {
      if (this.#peers.get(node)?.isReached === false) detours.set(node, this.#options.fallback(node, message));
    }
    if (detours.size < to.length) this.#write(message);
    const number = this.#last;
    return (node) => detours.get(node) ?? { id: () => this.#name(node, number), lost: null };
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of [this.#beat, this.#answer, this.#flushing]) this.#options.platform.timers.cancel(timer);
    this.#outlet.close();
    this.#sockets?.close();
    this.#sockets = null;
  }

  #name(to: NodeId, number: number): MessageId {
    return `${this.#options.self}-${to}-${this.#run.toString(36)}-m${number}`;
  }

  // From messages to datagrams

  #write(message: M): void {
    const scratch = this.#scratch;
    scratch.position = 0;
    this.#codec.write(message, scratch);
    const bytes = scratch.buffer.subarray(0, scratch.position);
    if (bytes.length > this.#maxMessageBytes)
      throw new InvariantViolation("bad-message", `a message has more than ${this.#maxMessageBytes} bytes`);
    if (this.#first > 0 && this.#writer.position + bytes.length > this.payloadBytes) this.#flush();
    this.#last += 1;
    if (this.#begin() + bytes.length > this.payloadBytes) {
      this.#first = 0;
      return this.#sendFragments(bytes);
    }
    this.#writer.append(bytes);
    if (this.#writer.position >= FULL_BODY_BYTES) this.#flush();
    else this.#flushing ??= this.#options.platform.timers.soon(() => this.#flush());
  }

  /** Begins a body if there is none. Returns its length. */
  #begin(): number {
    if (this.#first > 0) return this.#writer.position;
    this.#first = this.#last;
    this.#writer.position = 0;
    this.#writer.natural(this.#first);
    return this.#writer.position;
  }

  #flush(): void {
    this.#options.platform.timers.cancel(this.#flushing);
    this.#flushing = null;
    if (this.#first === 0) return;
    const [first, last] = [this.#first, this.#last];
    this.#first = 0;
    const lost = this.#outlet.transmit("messages", this.#writer.bytes());
    for (const [to, why] of lost) this.#lose(to, first, last, why);
  }

  #sendFragments(message: Buffer): void {
    const number = this.#last;
    const room = this.payloadBytes - FRAGMENT_EXTRA_BYTES;
    const fragments = Math.ceil(message.length / room);
    const lost = new Map<NodeId, LossReason>();
    for (let i = 0; i < fragments; i++) {
      const body = new Writer(this.payloadBytes);
      body.natural(number);
      body.natural(i);
      body.natural(fragments);
      body.append(message.subarray(i * room, (i + 1) * room));
      for (const [to, why] of this.#outlet.transmit("fragment", body.bytes())) lost.set(to, why);
    }
    for (const [to, why] of lost) this.#lose(to, number, number, why);
  }

  #lose(to: NodeId, first: number, last: number, why: LossReason): void {
    count(this.#options.counts.lost, why, last - first + 1);
    const ids = (): MessageId[] => Array.from({ length: last - first + 1 }, (_, i) => this.#name(to, first + i));
    this.#options.onLost(to, ids, why);
  }

  // From datagrams to messages

  #receive(datagram: Buffer, address: string): void {
    const { counts, self } = this.#options;
    try {
      const opened = this.#format.open(datagram);
      if (isObjection(opened)) return this.#refuse(address, opened);
      const { from, run, excluded } = opened.header;
      if (from === self && run === this.#run) return; // Multicast loops a member's own datagrams back to it.
      counts.datagramsReceived += 1;
      counts.bytesReceived += datagram.length;
      if (from === self) return this.#refuse(address, ["duplicate-id", `another process uses the id ${self}`]);
      const peer = this.#peers.get(from);
      if (peer === undefined)
        return this.#refuse(address, ["unknown-node", `expected one of the members, got node ${from}`]);
      if (!excluded.includes(self)) this.#take(datagram, opened, peer, address);
    } catch (error) {
      if (!(error instanceof MalformedBytes)) return this.#options.onFatal(error as Error);
      this.#refuse(address, ["malformed", error.message]);
    }
  }

  #take(datagram: Buffer, opened: Opened, peer: UdpPeer, address: string): void {
    const { kind, run, number } = opened.header;
    const body = this.#format.body(datagram, opened, peer.keyFor(run));
    if (isObjection(body)) return this.#refuse(address, body);
    const objection = peer.objection(run, number, opened.isSealed);
    if (objection !== null) return this.#refuse(address, objection);
    const reader = new Reader(body);
    if (kind === "hello") return this.#greeted(peer, run, number, reader);
    // The two processes have not exchanged hellos yet. The sender will repeat the content later.
    if (!peer.isTrusted(run)) return;
    if (kind === "messages") return this.#takeMessages(peer.node, run, reader);
    const [message, index, fragments] = [reader.natural(), reader.natural(), reader.natural()];
    const whole = peer.fragments?.take(message, index, fragments, body.subarray(reader.position)) ?? null;
    if (whole !== null) this.#deliver(peer.node, run, message, [this.#decode(new Reader(whole))]);
  }

  #takeMessages(from: NodeId, run: number, body: Reader): void {
    const first = body.natural();
    const messages: M[] = [];
    while (body.position < body.end) messages.push(this.#codec.read(body));
    this.#deliver(from, run, first, messages);
  }

  #decode(body: Reader): M {
    const message = this.#codec.read(body);
    if (body.position < body.end) throw new MalformedBytes("a message is longer than its content");
    return message;
  }

  #deliver(from: NodeId, run: number, first: number, messages: readonly M[]): void {
    const name = `${from}-${this.#options.self}-${run.toString(36)}-m`;
    for (const [i, message] of messages.entries()) {
      if (this.#isClosed) return;
      this.#options.deliver(from, message, () => `${name}${first + i}`);
    }
  }

  #refuse(address: string, [reason, detail]: Objection): void {
    const reasonOf: RefusedReason = reason;
    count(this.#options.counts.refused, reasonOf);
    const fields = { event: "datagram-refused", from: address, reason };
    this.#options.log.once(`${reason} ${address}`, `refused a datagram from ${address} (${reason}): ${detail}`, fields);
  }

  // Hellos, which list the members that this member receives from

  #hello(): void {
    const into = new Writer(64);
    heardCodec.write(
      [...this.#peers.values()].flatMap(({ heard }) => heard),
      into,
    );
    this.#outlet.transmit("hello", into.bytes());
  }

  #greeted(peer: UdpPeer, run: number, number: number, body: Reader): void {
    const heard = heardCodec.read(body);
    if (body.position < body.end) throw new MalformedBytes("a hello is longer than its content");
    const hasNews = peer.greet(run, number, heard, this.#options.self);
    if (hasNews)
      this.#answer ??= this.#options.platform.timers.after(ANSWER_MS, () => {
        this.#answer = null;
        this.#hello();
      });
    if (!peer.isReached) return;
    const wasDeaf = peer.deafLooks >= PATIENCE;
    peer.deafLooks = 0;
    if (!wasDeaf) return;
    const fields = { event: "multicast-restored", peer: peer.node };
    this.#options.log.info(`multicast to node ${peer.node} works again`, fields);
  }

  #look(): void {
    this.#hello();
    const linked = new Set(this.#options.linked());
    const deaf: NodeId[] = [];
    for (const [node, peer] of this.#peers) {
      this.#options.counts.messagesIncomplete += peer.look();
      peer.deafLooks = linked.has(node) && !peer.isReached ? peer.deafLooks + 1 : 0;
      if (peer.deafLooks === PATIENCE) deaf.push(node);
    }
    if (deaf.length > 0) this.#sayDeaf(deaf);
  }

  #sayDeaf(nodes: readonly NodeId[]): void {
    const { group, port, interface: through } = this.#place;
    const who = `node${nodes.length > 1 ? "s" : ""} ${nodes.join(", ")}`;
    const where = `multicast to ${group}:${port} through ${through}`;
    const why = "a filter, or a switch that does not forward the group";
    this.#options.log.warn(
      `${where} does not reach ${who} and back, although the links are open: ${why}. Until it does, messages to them are sent one by one`,
      { event: "multicast-deaf", peers: nodes.join(", ") },
    );
  }
}
