/**
 * Where peers come in. A connection is a stranger until its `hello` has been checked: version, cluster, protocol, who
 * it is, whom it wants, and with TLS that its certificate says the same. Strangers are few, small and short-lived. After
 * that, every message is decoded, which is also its validation, before a handler sees it.
 */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { NodeId } from "../../core/protocol.ts";
import type { Log } from "../log.ts";
import { type Counts, count, type RefusedReason } from "../metrics.ts";
import { type Codec, MalformedBytes, type Reader } from "../wire.ts";
import {
  ackCodec,
  emptyFrame,
  FRAME,
  frameSplitter,
  type Hello,
  helloCodec,
  type Refusal,
  refuseCodec,
  welcomeCodec,
} from "./frames.ts";
import type { Limits } from "./limits.ts";

export interface AcceptorOptions<M> {
  /** What this node says of itself; `to` is not looked at. */
  readonly self: Hello;
  readonly peers: readonly NodeId[];
  readonly codec: Codec<M>;
  readonly limits: Limits;
  readonly counts: Counts;
  readonly log: Log;
  /** A message has arrived; `number` counts those that `from` sent here in this incarnation. */
  readonly deliver: (from: NodeId, message: M, number: number, incarnation: number) => void;
  /** A peer has said which run of its process it is. */
  readonly onIncarnation: (peer: NodeId, incarnation: number) => void;
  /** A handler failed. */
  readonly onFatal: (error: Error) => void;
}

/** What is known of a peer across its connections. */
interface Incoming {
  connection: Connection | null;
  incarnation: number;
  /** The last message taken from this incarnation. */
  received: number;
}

interface Connection {
  readonly socket: Socket;
  /** When bytes last came in. */
  heard: number;
}

const STRANGER_BYTES = 1_024;
/** An acknowledgement is sent after so many bytes, or so much later. */
const ACK_BYTES = 64 * 1024;
const ACK_MS = 20;
/** How long a process may take to prove that it lives when another claims its id. */
const PROBE_MS = 1_000;

export class Acceptor<M> {
  readonly #incoming: ReadonlyMap<NodeId, Incoming>;
  readonly #strangers = new Set<Socket>();
  readonly #members = new Set<Socket>();

  constructor(private readonly options: AcceptorOptions<M>) {
    this.#incoming = new Map(options.peers.map((peer) => [peer, { connection: null, incarnation: 0, received: 0 }]));
  }

  close(): void {
    for (const socket of [...this.#strangers, ...this.#members]) socket.destroy();
  }

  /** Takes in a connection that has just been made. */
  accept(socket: Socket): void {
    const { limits } = this.options;
    const remote = `${socket.remoteAddress}`;
    socket.on("error", () => socket.destroy()); // A broken connection is the dialer's to repair.
    if (this.#strangers.size >= limits.maxStrangers) {
      this.#note("too-many-strangers", remote, `${limits.maxStrangers} connections have not said who they are`);
      return void socket.destroy();
    }
    socket.setNoDelay(true);
    this.#strangers.add(socket);
    const deadline = setTimeout(() => {
      this.#note("handshake-timeout", remote, "a connection did not say who it is");
      socket.destroy();
    }, limits.handshakeTimeoutMs);
    socket.once("close", () => {
      clearTimeout(deadline);
      this.#strangers.delete(socket);
      this.#members.delete(socket);
    });
    this.#read(socket, (hello) => {
      clearTimeout(deadline);
      this.#strangers.delete(socket);
      this.#members.add(socket);
      return this.#receiver(socket, hello);
    });
  }

  /** Reads a connection: first its `hello`, then what `welcomed` makes of the rest. */
  #read(socket: Socket, welcomed: (hello: Hello) => (kind: number, body: Reader) => void): void {
    const connection: Connection = { socket, heard: performance.now() };
    let receive: ((kind: number, body: Reader) => void) | null = null;
    let hasGreeted = false;
    const feed = frameSplitter(
      () => (receive === null ? STRANGER_BYTES : this.options.limits.maxFrameBytes),
      (kind, body) => {
        if (receive !== null) receive(kind, body);
        else if (kind !== FRAME.hello || hasGreeted)
          throw new MalformedBytes(`expected one hello at first, got a frame of kind ${kind}`);
        else {
          hasGreeted = true;
          this.#greet(connection, helloCodec.read(body), (hello) => {
            receive = welcomed(hello);
          });
        }
        return !socket.destroyed;
      },
    );
    socket.on("data", (chunk: Buffer) => {
      connection.heard = performance.now();
      this.options.counts.bytesReceived += chunk.length;
      try {
        feed(chunk);
      } catch (error) {
        if (error instanceof MalformedBytes) this.#refuse(socket, "malformed", error.message);
        else this.options.onFatal(error as Error);
      }
    });
  }

  #greet(connection: Connection, hello: Hello, welcome: (hello: Hello) => void): void {
    const { socket } = connection;
    const objection = this.#objection(hello, socket);
    if (objection !== null) return this.#refuse(socket, ...objection);
    const incoming = this.#incoming.get(hello.from) as Incoming;
    const incumbent = incoming.connection;
    const admit = (): void => {
      if (socket.destroyed) return;
      incumbent?.socket.destroy();
      if (incoming.incarnation !== hello.incarnation) incoming.received = 0;
      incoming.incarnation = hello.incarnation;
      incoming.connection = connection;
      socket.once("close", () => {
        if (incoming.connection === connection) incoming.connection = null;
      });
      welcome(hello);
      socket.write(welcomeCodec.frame({ incarnation: this.options.self.incarnation, received: incoming.received }));
      this.options.onIncarnation(hello.from, hello.incarnation);
    };
    if (incumbent === null || incoming.incarnation === hello.incarnation) return admit();
    this.#challenge(incumbent, (alive) => {
      if (alive) this.#refuse(socket, "duplicate-id", `another process is node ${hello.from} already, and it is alive`);
      else admit();
    });
  }

  /** Why this `hello` is turned away, or null. */
  #objection(hello: Hello, socket: Socket): [Refusal, string] | null {
    const { self, peers } = this.options;
    if (hello.version !== self.version)
      return ["wrong-version", `expected wire version ${self.version}, got ${hello.version}`];
    if (hello.cluster !== self.cluster)
      return ["wrong-cluster", `expected cluster "${self.cluster}", got "${hello.cluster}"`];
    if (hello.protocol !== self.protocol)
      return ["wrong-protocol", "expected the same protocol and version of it, got other message shapes"];
    if (hello.to !== self.from) return ["wrong-node", `this is node ${self.from}, and node ${hello.to} was called`];
    if (!peers.includes(hello.from))
      return ["unknown-node", `expected one of the nodes ${peers.join(", ")}, got ${hello.from}`];
    if (socket instanceof TLSSocket && !certifies(socket, hello.from))
      return ["wrong-certificate", `expected a certificate for the name ${certificateName(hello.from)}`];
    return null;
  }

  /** Asks the connection that holds an id whether it is alive. */
  #challenge(incumbent: Connection, decide: (alive: boolean) => void): void {
    const asked = performance.now();
    incumbent.socket.write(emptyFrame(FRAME.probe));
    const check = setInterval(() => {
      const alive = incumbent.heard > asked;
      const over = alive || incumbent.socket.destroyed || performance.now() - asked > PROBE_MS;
      if (!over) return;
      clearInterval(check);
      decide(alive && !incumbent.socket.destroyed);
    }, 20);
  }

  /** Takes the messages of a welcomed connection. */
  #receiver(socket: Socket, { from, incarnation }: Hello): (kind: number, body: Reader) => void {
    const { codec, counts, deliver } = this.options;
    const incoming = this.#incoming.get(from) as Incoming;
    let unacknowledged = 0;
    let ackTimer: NodeJS.Timeout | null = null;
    const acknowledge = (): void => {
      if (ackTimer !== null) clearTimeout(ackTimer);
      ackTimer = null;
      unacknowledged = 0;
      // Acknowledgements are cumulative: a peer that does not read them gets fewer.
      if (!socket.destroyed && !socket.writableNeedDrain) socket.write(ackCodec.frame({ received: incoming.received }));
    };
    socket.once("close", () => {
      if (ackTimer !== null) clearTimeout(ackTimer);
    });
    return (kind, body) => {
      if (kind === FRAME.alive) return; // `heard` has been noted.
      if (kind !== FRAME.messages) throw new MalformedBytes(`a frame of kind ${kind} has no place here`);
      unacknowledged += body.end - body.position;
      let number = body.natural();
      for (; body.position < body.end && !socket.destroyed; number++) {
        const message = codec.read(body);
        if (number <= incoming.received) {
          counts.duplicates += 1;
          continue;
        }
        incoming.received = number;
        deliver(from, message, number, incarnation);
      }
      if (unacknowledged > ACK_BYTES) acknowledge();
      else ackTimer ??= setTimeout(acknowledge, ACK_MS);
    };
  }

  #refuse(socket: Socket, reason: Refusal, detail: string): void {
    this.#note(reason, `${socket.remoteAddress}`, detail);
    socket.end(refuseCodec.frame({ reason, detail: detail.slice(0, 200) }));
    socket.destroySoon();
    setTimeout(() => socket.destroy(), PROBE_MS).unref(); // Whoever does not read the refusal is not waited for.
  }

  #note(reason: RefusedReason, remote: string, detail: string): void {
    count(this.options.counts.refused, reason);
    this.options.log.once(`${reason} ${remote}`, `refused a connection from ${remote} (${reason}): ${detail}`);
  }
}

/** The DNS name that a member's certificate must carry. */
export const certificateName = (node: NodeId): string => `node-${node}`;

function certifies(socket: TLSSocket, node: NodeId): boolean {
  const names = socket.getPeerCertificate().subjectaltname?.split(", ") ?? [];
  return names.includes(`DNS:${certificateName(node)}`);
}
