/**
 * Where peers come in. A connection is a stranger until its `hello` has been checked: version, cluster, protocol, who
 * it is, which node it wants, and with TLS that its certificate says the same. Strangers are few, small and short-lived. After
 * that, every message is decoded, which is also its validation, before a handler sees it.
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
  /** What this node says of itself; `to` is not looked at. */
  readonly self: Omit<Hello, "identity">;
  readonly identity: GroupIdentity;
  readonly peers: readonly NodeId[];
  readonly codec: Codec<M>;
  readonly limits: Limits;
  readonly counts: Counts;
  readonly log: Log;
  /** A message has arrived; `number` counts those that `from` sent here in this incarnation. */
  readonly deliver: (from: NodeId, message: M, number: number, incarnation: number) => void;
  /** A peer has said which run of its process it is. */
  readonly onIncarnation: (peer: NodeId, incarnation: number) => void;
  /** A node is about to be let in that is to be called there. Where the list of members changes: also one that is not known yet. */
  readonly onCaller?: ((from: NodeId, address: HostPort) => void) | undefined;
  /** A handler failed. */
  readonly onFatal: (error: Error) => void;
}

/** What is known of a peer across its connections. */
interface Incoming {
  connection: Connection | null;
  /** The latest runs of its process, the present one first: one that was taken for dead may come back. */
  readonly runs: Run[];
}

/** One run of a peer's process. */
interface Run {
  readonly incarnation: number;
  /** The last message taken from it. */
  received: number;
}

interface Connection {
  readonly stream: Stream;
  /** The DNS names of its certificate; null without TLS. */
  readonly names: readonly string[] | null;
  readonly remote: string;
  /** When bytes last came in. */
  heard: number;
}

/** A connection as it was made, and what is spoken on: the same, or TLS on top of it. */
interface Stranger {
  readonly made: Stream;
  spoken: Stream;
}

type Receive = (kind: number, body: Reader) => void;

const STRANGER_BYTES = 1_024;
const MAX_RUNS = 4;
/** Far from where counting on loses its precision. */
const MAX_NUMBER = 2 ** 52;
/** An acknowledgement is sent after so many bytes, or so much later. */
const ACK_BYTES = 64 * 1024;
const ACK_MS = 20;
/** How long a process may take to prove that it lives when another claims its id. */
const PROBE_MS = 1_000;
const PROBE_LOOK_MS = 20;
/** How long a refused caller may take to read why. */
const FAREWELL_MS = 1_000;

export class Acceptor<M> {
  readonly #options: AcceptorOptions<M>;
  readonly #incoming: Map<NodeId, Incoming>;
  /** Of peers that have been removed: one that comes back has not begun to count anew. */
  readonly #formerRuns = new Map<NodeId, Run[]>();
  /** By where they come from, the longest here first. */
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

  /** It is no peer any more. */
  removePeer(peer: NodeId): void {
    const incoming = this.#incoming.get(peer);
    if (incoming === undefined) return;
    incoming.connection?.stream.destroy();
    this.#formerRuns.set(peer, incoming.runs);
    this.#incoming.delete(peer);
  }

  /** Notes a connection that has just been made, before any TLS on it: from now on its silence counts. */
  meet(stream: Stream): void {
    this.#streams.add(stream);
    if (this.#strangers.size >= this.#options.limits.maxStrangers) this.#turnOutOldest();
    const origin = originOf(stream);
    const stranger: Stranger = { made: stream, spoken: stream };
    this.#strangers.delete(origin); // One from there has gone, and its end has not been heard of.
    this.#strangers.set(origin, stranger);
    stream.once("close", () => {
      this.#streams.delete(stream);
      if (this.#strangers.get(origin) === stranger) this.#strangers.delete(origin);
    });
  }

  /** Hears what a connection that was met has to say; with TLS, once that has been agreed on. */
  accept(stream: Stream, names: readonly string[] | null): void {
    const { limits, platform } = this.#options;
    const stranger = this.#strangers.get(originOf(stream));
    if (stranger !== undefined) stranger.spoken = stream;
    const connection: Connection = { stream, names, remote: remoteOf(stream), heard: platform.clock.now() };
    stream.on("error", () => stream.destroy()); // A broken connection is the dialer's to repair.
    const deadline = platform.timers.after(limits.handshakeTimeoutMs, () => {
      if (isOver(stream)) return;
      this.note("handshake-timeout", connection.remote, "a connection did not say who it is");
      stream.destroy();
    });
    stream.once("close", () => platform.timers.cancel(deadline));
    this.#read(connection, () => platform.timers.cancel(deadline));
  }

  /** Counts what was turned away, and says so once for each reason and address. */
  note(reason: RefusedReason, remote: string, detail: string): void {
    count(this.#options.counts.refused, reason);
    const fields = { event: "connection-refused", from: remote, reason };
    this.#options.log.once(`${reason} ${remote}`, `refused a connection from ${remote} (${reason}): ${detail}`, fields);
  }

  /** A member says who it is at once, so who has been silent for longest is not one, and must not keep members out. */
  #turnOutOldest(): void {
    for (const [origin, { made, spoken }] of this.#strangers) {
      const detail = `more than ${this.#options.limits.maxStrangers} connections have not said who they are`;
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
          throw new MalformedBytes(`expected one hello at first, got a frame of kind ${kind}`);
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
      if (isOver(stream)) return; // Read to its end, so that the refusal is not lost in a reset.
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

  /** Lets a peer in. Where another run of its process is connected already, that one has to be dead. */
  #admit(connection: Connection, hello: Hello, welcome: (receive: Receive) => void): void {
    const { stream } = connection;
    if (isOver(stream)) return;
    const incoming = this.#incoming.get(hello.from);
    if (incoming === undefined) return void stream.destroy(); // Removed while another claimed its id.
    const incumbent = incoming.connection;
    if (incumbent !== null && incoming.runs[0]?.incarnation !== hello.incarnation)
      return this.#challenge(incumbent, (isAlive) => {
        if (isAlive)
          return this.#refuse(connection, ["duplicate-id", `another process is node ${hello.from}, and it is alive`]);
        incumbent.stream.destroy();
        if (incoming.connection === incumbent) incoming.connection = null;
        this.#admit(connection, hello, welcome); // A third one may have come in meanwhile.
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

  /** Why this `hello` is turned away, or null. */
  #objection(hello: Hello, names: readonly string[] | null): [Refusal, string] | null {
    const { self, identity } = this.#options;
    const otherVersion = versionObjection(self, hello);
    if (otherVersion !== null) return ["wrong-version", otherVersion];
    if (hello.cluster !== self.cluster)
      return ["wrong-cluster", `expected cluster "${self.cluster}", got "${hello.cluster}"`];
    // Nodes of different versions may differ in the hash: the newer one knows the messages of the older one.
    if (hello.version === self.version && hello.protocol !== self.protocol) return ["wrong-protocol", OTHER_PROTOCOL];
    if (hello.to !== self.from) return ["wrong-node", `this is node ${self.from}, and node ${hello.to} was called`];
    const isOfGroup = hello.identity.group === identity.group || hello.identity.group === "";
    if (hello.from === self.from || (isOfGroup && !this.#mayCall(hello)))
      return ["unknown-node", `expected one of the nodes ${[...this.#incoming.keys()].join(", ")}, got ${hello.from}`];
    if (names !== null && !names.includes(certificateName(hello.from)))
      return ["wrong-certificate", `expected a certificate for the name ${certificateName(hello.from)}`];
    const disagreement = identity.judge(hello.from, hello.identity); // Once it has proved who it is.
    return disagreement && [disagreement.reason, disagreement.detail];
  }

  /** One that has been removed is told so. One that is not known is a member by a later list if it knows this node's journal. */
  #mayCall({ from, identity: theirs, address }: Hello): boolean {
    const { identity, onCaller } = this.#options;
    if (this.#incoming.has(from) || identity.isRemoved(from)) return true;
    return onCaller !== undefined && identity.isRememberedBy(theirs) && parseHostPort(address) !== null;
  }

  /**
   * Asks the connection that holds an id whether it is alive. Looks are counted, and not the time: where this process stood still, the
   * answer has come, and is read after the first of them.
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

  /** Takes the messages of a welcomed connection. */
  #receiver(stream: Stream, from: NodeId, run: Run): Receive {
    const { codec, counts, deliver, platform } = this.#options;
    const { incarnation } = run;
    let unacknowledged = 0;
    let ackTimer: Timer | null = null;
    const acknowledge = (): void => {
      platform.timers.cancel(ackTimer);
      ackTimer = null;
      unacknowledged = 0;
      // Acknowledgements are cumulative: a peer that does not read them gets fewer, and the last one when it does.
      if (!isOver(stream) && !stream.writableNeedDrain) stream.write(ackCodec.frame({ received: run.received }));
    };
    stream.on("drain", acknowledge);
    stream.once("close", () => platform.timers.cancel(ackTimer));
    return (kind, body) => {
      if (kind === FRAME.alive) return; // `heard` has been noted.
      if (kind !== FRAME.messages) throw new MalformedBytes(`a frame of kind ${kind} has no place here`);
      unacknowledged += body.end - body.position;
      let number = body.natural();
      if (number < 1 || number > MAX_NUMBER) throw new MalformedBytes(`a message has the number ${number}`);
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

  /** @param to who is refused, if that is known. */
  #refuse({ stream, remote }: Connection, [reason, detail]: [Refusal, string], to: NodeId | null = null): void {
    const isSaid = to !== null && this.#options.identity.disagreements.get(to)?.detail === detail;
    if (isSaid) count(this.#options.counts.refused, reason);
    else if (reason !== "not-founded") this.note(reason, remote, detail); // Which every group goes through.
    if (isOver(stream)) return;
    const identity = this.#options.identity.toward(to ?? this.#options.self.from);
    stream.end(refuseCodec.frame({ reason, detail: detail.slice(0, 200), identity }));
    const { timers } = this.#options.platform;
    const farewell = timers.after(FAREWELL_MS, () => stream.destroy());
    stream.once("close", () => timers.cancel(farewell));
  }
}

/** Nothing can be written any more: refused, replaced or broken. */
const isOver = (stream: Stream): boolean => !stream.writable;

export const remoteOf = (stream: Stream): string => stream.remoteAddress ?? "an address that has gone";

/** The same for a connection and the TLS on it, which do not know each other otherwise. */
const originOf = ({ remoteAddress, remotePort }: Stream): string => `${remoteAddress} ${remotePort}`;

function presentRun({ runs }: Incoming, incarnation: number): Run {
  const at = runs.findIndex((run) => run.incarnation === incarnation);
  const run = at < 0 ? { incarnation, received: 0 } : (runs.splice(at, 1)[0] as Run);
  runs.unshift(run);
  runs.length = Math.min(runs.length, MAX_RUNS);
  return run;
}

/** The DNS name that a member's certificate must carry. */
export const certificateName = (node: NodeId): string => `node-${node}`;
