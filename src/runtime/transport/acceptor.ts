/**
 * Accepts connections from peers. A connection is unverified until its `hello` has been checked: version, cluster,
 * protocol, sender, intended receiver and, with TLS, that the certificate matches. Unverified connections are limited
 * in number, memory and time. After the handshake, every message is decoded, which also validates it, before a handler
 * sees it.
 */
import type { NodeId } from "../../core/protocol.ts";
import { type HostPort, parseHostPort } from "../host-port.ts";
import type { Log } from "../log.ts";
import { type Counts, count, type RefusedReason } from "../metrics.ts";
import type { Platform, Stream, Timer } from "../platform/platform.ts";
import { type Codec, MalformedBytes, type Reader } from "../wire.ts";
import {
  ackCodec,
  emptyFrame,
  FRAME,
  frameSplitter,
  type Hello,
  helloCodec,
  OTHER_PROTOCOL,
  type Refusal,
  refuseCodec,
  versionObjection,
  welcomeCodec,
} from "./frames.ts";
import type { GroupIdentity } from "./identity.ts";
import type { Limits } from "./limits.ts";

export interface AcceptorOptions<M> {
  readonly platform: Platform;
  /** This node's own hello. Its `to` field is ignored. */
  readonly self: Omit<Hello, "identity">;
  readonly identity: GroupIdentity;
  readonly peers: readonly NodeId[];
  readonly codec: Codec<M>;
  readonly limits: Limits;
  readonly counts: Counts;
  readonly log: Log;
  /**
   * Called when a message arrives. `number` counts the messages that `from` has sent to this node in this incarnation.
   */
  readonly deliver: (from: NodeId, message: M, number: number, incarnation: number) => void;
  /** Called when a peer has identified the current run of its process. */
  readonly onIncarnation: (peer: NodeId, incarnation: number) => void;
  /**
   * Called before a node is admitted, with the address at which it can be dialed. If the member list can change, the
   * node may be new.
   */
  readonly onCaller?: ((from: NodeId, address: HostPort) => void) | undefined;
  /** Called when a handler throws. */
  readonly onFatal: (error: Error) => void;
}

/** A peer's state, which outlives its connections. */
interface Incoming {
  connection: Connection | null;
  /**
   * The most recent runs of the peer's process, starting with the current one. A process that was considered dead may
   * reconnect.
   */
  readonly runs: Run[];
}

/** One run of a peer's process. */
interface Run {
  readonly incarnation: number;
  /** The number of the last message accepted from this run. */
  received: number;
}

interface Connection {
  readonly stream: Stream;
  /** The DNS names in its certificate. Null without TLS. */
  readonly names: readonly string[] | null;
  readonly remote: string;
  /** When bytes were last received. */
  heard: number;
}

/**
 * A connection as it was accepted, and the stream that carries its frames, which is either the same stream or TLS on
 * top of it.
 */
interface Stranger {
  readonly made: Stream;
  spoken: Stream;
}

type Receive = (kind: number, body: Reader) => void;

const STRANGER_BYTES = 1_024;
const MAX_RUNS = 4;
/** The highest message number. It is far below the point at which adding 1 loses precision. */
const MAX_NUMBER = 2 ** 52;
/** An acknowledgement is sent after this many bytes, or this long after a message. */
const ACK_BYTES = 64 * 1024;
const ACK_MS = 20;
/** How long a process has to prove that it is alive when another process claims its id. */
const PROBE_MS = 1_000;
const PROBE_LOOK_MS = 20;
/** How long a refused caller has to read the reason. */
const FAREWELL_MS = 1_000;

/** Handles the connections that peers open. */
export class Acceptor<M> {
  readonly #options: AcceptorOptions<M>;
  readonly #incoming: Map<NodeId, Incoming>;
  /** The runs of removed peers. A peer that is added again continues its numbering. */
  readonly #formerRuns = new Map<NodeId, Run[]>();
  /** Unverified connections by remote address, oldest first. */
  readonly #strangers = new Map<string, Stranger>();
  readonly #streams = new Set<Stream>();

  constructor(options: AcceptorOptions<M>) {
    this.#options = options;
    this.#incoming = new Map(options.peers.map((peer) => [peer, { connection: null, runs: [] }]));
  }

  close(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  addPeer(peer: NodeId): void {
    if (this.#incoming.has(peer)) return;
    this.#incoming.set(peer, { connection: null, runs: this.#formerRuns.get(peer) ?? [] });
    this.#formerRuns.delete(peer);
  }

  /** Removes a peer and closes its connection. */
  removePeer(peer: NodeId): void {
    const incoming = this.#incoming.get(peer);
    if (incoming === undefined) return;
    incoming.connection?.stream.destroy();
    this.#formerRuns.set(peer, incoming.runs);
    this.#incoming.delete(peer);
  }

  /** Registers a connection as unverified when it has just been accepted, before any TLS handshake. */
  meet(stream: Stream): void {
    this.#streams.add(stream);
    if (this.#strangers.size >= this.#options.limits.maxStrangers) this.#turnOutOldest();
    const origin = originOf(stream);
    const stranger: Stranger = { made: stream, spoken: stream };
    // An earlier connection from this address may still be registered if its end has not been detected yet.
    this.#strangers.delete(origin);
    this.#strangers.set(origin, stranger);
    stream.once("close", () => {
      this.#streams.delete(stream);
      if (this.#strangers.get(origin) === stranger) this.#strangers.delete(origin);
    });
  }

  /** Reads from a registered connection. With TLS, call this after the handshake. */
  accept(stream: Stream, names: readonly string[] | null): void {
    const { limits, platform } = this.#options;
    const stranger = this.#strangers.get(originOf(stream));
    if (stranger !== undefined) stranger.spoken = stream;
    const connection: Connection = { stream, names, remote: remoteOf(stream), heard: platform.clock.now() };
    stream.on("error", () => stream.destroy()); // If the connection breaks, the dialer opens a new one.
    const deadline = platform.timers.after(limits.handshakeTimeoutMs, () => {
      if (isOver(stream)) return;
      this.note("handshake-timeout", connection.remote, "a connection did not identify itself");
      stream.destroy();
    });
    stream.once("close", () => platform.timers.cancel(deadline));
    this.#read(connection, () => platform.timers.cancel(deadline));
  }

  /** Counts a rejection, and logs it once per reason and address. */
  note(reason: RefusedReason, remote: string, detail: string): void {
    count(this.#options.counts.refused, reason);
    const fields = { event: "connection-refused", from: remote, reason };
    this.#options.log.once(`${reason} ${remote}`, `refused a connection from ${remote} (${reason}): ${detail}`, fields);
  }

  /**
   * Closes the oldest unverified connection. A member sends its hello immediately, so the connection that has been
   * silent longest does not come from a member, and it must not keep members out.
   */
  #turnOutOldest(): void {
    for (const [origin, { made, spoken }] of this.#strangers) {
      const detail = `more than ${this.#options.limits.maxStrangers} connections have not identified themselves`;
      if (!isOver(spoken)) this.note("too-many-strangers", remoteOf(made), detail);
      this.#strangers.delete(origin);
      return void made.destroy();
    }
  }

  /** Reads a connection: first its `hello`, then its messages. */
  #read(connection: Connection, welcomed: () => void): void {
    const { stream } = connection;
    let receive: Receive | null = null;
    let hasGreeted = false;
    const feed = frameSplitter(
      () => (receive === null ? STRANGER_BYTES : this.#options.limits.maxFrameBytes),
      (kind, body) => {
        if (receive !== null) receive(kind, body);
        else if (kind !== FRAME.hello || hasGreeted)
          throw new MalformedBytes(`expected a hello first, got a frame of kind ${kind}`);
        else {
          hasGreeted = true;
          this.#greet(connection, helloCodec.read(body), (receiver) => {
            receive = receiver;
            welcomed();
          });
        }
        return !isOver(stream);
      },
    );
    stream.on("data", (chunk: Buffer) => {
      connection.heard = this.#options.platform.clock.now();
      this.#options.counts.bytesReceived += chunk.length;
      if (isOver(stream)) return; // Keep reading to the end, so that a reset does not discard the refusal.
      try {
        feed(chunk);
      } catch (error) {
        if (error instanceof MalformedBytes) this.#refuse(connection, ["malformed", error.message]);
        else this.#options.onFatal(error as Error);
      }
    });
  }

  #greet(connection: Connection, hello: Hello, welcome: (receive: Receive) => void): void {
    const objection = this.#objection(hello, connection.names);
    const address = parseHostPort(hello.address);
    if (objection === null && address !== null) this.#options.onCaller?.(hello.from, address);
    if (objection === null) this.#admit(connection, hello, welcome);
    else this.#refuse(connection, objection, hello.from);
  }

  /** Admits a peer. If a different run of its process is connected, first makes sure that this run is dead. */
  #admit(connection: Connection, hello: Hello, welcome: (receive: Receive) => void): void {
    const { stream } = connection;
    if (isOver(stream)) return;
    const incoming = this.#incoming.get(hello.from);
    // The peer was removed while a different process was claiming its id.
    if (incoming === undefined) return void stream.destroy();
    const incumbent = incoming.connection;
    if (incumbent !== null && incoming.runs[0]?.incarnation !== hello.incarnation)
      return this.#challenge(incumbent, (isAlive) => {
        if (isAlive)
          return this.#refuse(connection, ["duplicate-id", `another running process uses the id ${hello.from}`]);
        incumbent.stream.destroy();
        if (incoming.connection === incumbent) incoming.connection = null;
        this.#admit(connection, hello, welcome); // A third process may have connected in the meantime.
      });
    incumbent?.stream.destroy();
    incoming.connection = connection;
    stream.once("close", () => {
      if (incoming.connection === connection) incoming.connection = null;
    });
    this.#strangers.delete(originOf(stream));
    const run = presentRun(incoming, hello.incarnation);
    welcome(this.#receiver(stream, hello.from, run));
    stream.write(welcomeCodec.frame({ incarnation: this.#options.self.incarnation, received: run.received }));
    this.#options.onIncarnation(hello.from, hello.incarnation);
  }

  /** Returns why this `hello` is refused, or null if it is accepted. */
  #objection(hello: Hello, names: readonly string[] | null): [Refusal, string] | null {
    const { self, identity } = this.#options;
    const otherVersion = versionObjection(self, hello);
    if (otherVersion !== null) return ["wrong-version", otherVersion];
    if (hello.cluster !== self.cluster)
      return ["wrong-cluster", `expected cluster "${self.cluster}", got "${hello.cluster}"`];
    // Nodes with different versions may have different hashes. The newer node knows the older one's messages.
    if (hello.version === self.version && hello.protocol !== self.protocol) return ["wrong-protocol", OTHER_PROTOCOL];
    if (hello.to !== self.from)
      return ["wrong-node", `this is node ${self.from}, but the caller expected node ${hello.to}`];
    const isOfGroup = hello.identity.group === identity.group || hello.identity.group === "";
    if (hello.from === self.from || (isOfGroup && !this.#mayCall(hello)))
      return ["unknown-node", `expected one of the nodes ${[...this.#incoming.keys()].join(", ")}, got ${hello.from}`];
    if (names !== null && !names.includes(certificateName(hello.from)))
      return ["wrong-certificate", `expected a certificate for the name ${certificateName(hello.from)}`];
    // Judge the identity only once the caller has proved that it has this id.
    const disagreement = identity.judge(hello.from, hello.identity);
    return disagreement && [disagreement.reason, disagreement.detail];
  }

  /**
   * Whether the node may connect. A removed node is admitted so that it can learn of its removal. An unknown node that
   * has this node's journal on record was added by a later member list.
   */
  #mayCall({ from, identity: theirs, address }: Hello): boolean {
    const { identity, onCaller } = this.#options;
    if (this.#incoming.has(from) || identity.isRemoved(from)) return true;
    return onCaller !== undefined && identity.isRememberedBy(theirs) && parseHostPort(address) !== null;
  }

  /**
   * Checks whether the connection that currently holds an id is alive. Counts checks instead of time: if this process
   * was paused, the reply has already arrived and is read after the first check.
   */
  #challenge(incumbent: Connection, decide: (isAlive: boolean) => void): void {
    const { clock, timers } = this.#options.platform;
    const asked = clock.now();
    let looksLeft = Math.min(PROBE_MS, this.#options.limits.handshakeTimeoutMs / 2) / PROBE_LOOK_MS;
    incumbent.stream.write(emptyFrame(FRAME.probe));
    const look = timers.every(PROBE_LOOK_MS, () => {
      const isAlive = incumbent.heard > asked && !isOver(incumbent.stream);
      looksLeft -= 1;
      if (!isAlive && !isOver(incumbent.stream) && looksLeft > 0) return;
      timers.cancel(look);
      decide(isAlive);
    });
  }

  /** Returns the function that receives an admitted connection's messages. */
  #receiver(stream: Stream, from: NodeId, run: Run): Receive {
    const { codec, counts, deliver, platform } = this.#options;
    const { incarnation } = run;
    let unacknowledged = 0;
    let ackTimer: Timer | null = null;
    const acknowledge = (): void => {
      platform.timers.cancel(ackTimer);
      ackTimer = null;
      unacknowledged = 0;
      // Acknowledgements are cumulative. A peer that does not read them is sent fewer, and gets the last one once it
      // reads again.
      if (!isOver(stream) && !stream.writableNeedDrain) stream.write(ackCodec.frame({ received: run.received }));
    };
    stream.on("drain", acknowledge);
    stream.once("close", () => platform.timers.cancel(ackTimer));
    return (kind, body) => {
      if (kind === FRAME.alive) return; // `heard` has already been updated.
      if (kind !== FRAME.messages) throw new MalformedBytes(`unexpected frame of kind ${kind}`);
      unacknowledged += body.end - body.position;
      let number = body.natural();
      if (number < 1 || number > MAX_NUMBER) throw new MalformedBytes(`a message has the invalid number ${number}`);
      for (; body.position < body.end && !stream.destroyed; number++) {
        const message = codec.read(body);
        if (number <= run.received) {
          counts.duplicates += 1;
          continue;
        }
        run.received = number;
        deliver(from, message, number, incarnation);
      }
      if (unacknowledged > ACK_BYTES) acknowledge();
      else ackTimer ??= platform.timers.after(ACK_MS, acknowledge);
    };
  }

  /** @param to the refused node, if known */
  #refuse({ stream, remote }: Connection, [reason, detail]: [Refusal, string], to: NodeId | null = null): void {
    const isSaid = to !== null && this.#options.identity.disagreements.get(to)?.detail === detail;
    if (isSaid) count(this.#options.counts.refused, reason);
    else if (reason !== "not-founded") this.note(reason, remote, detail); // Every new group goes through this state.
    if (isOver(stream)) return;
    const identity = this.#options.identity.toward(to ?? this.#options.self.from);
    stream.end(refuseCodec.frame({ reason, detail: detail.slice(0, 200), identity }));
    const { timers } = this.#options.platform;
    const farewell = timers.after(FAREWELL_MS, () => stream.destroy());
    stream.once("close", () => timers.cancel(farewell));
  }
}

/** Whether nothing more can be written, because the connection was refused, was replaced or is broken. */
const isOver = (stream: Stream): boolean => !stream.writable;

/** Returns the other end's address, for log lines. */
export const remoteOf = (stream: Stream): string => stream.remoteAddress ?? "an unknown address";

/** Returns a key that is the same for a connection and the TLS stream on top of it. Nothing else links the two. */
const originOf = ({ remoteAddress, remotePort }: Stream): string => `${remoteAddress} ${remotePort}`;

function presentRun({ runs }: Incoming, incarnation: number): Run {
  const at = runs.findIndex((run) => run.incarnation === incarnation);
  const run = at < 0 ? { incarnation, received: 0 } : (runs.splice(at, 1)[0] as Run);
  runs.unshift(run);
  runs.length = Math.min(runs.length, MAX_RUNS);
  return run;
}

/** Returns the DNS name that a member's certificate must contain. */
export const certificateName = (node: NodeId): string => `node-${node}`;
