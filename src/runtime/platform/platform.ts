/**
 * What a member takes from its surroundings: time, timers, chance, network and disk. Nothing above reads a clock, a disk or a
 * socket by itself, so a member runs unchanged on a real platform (`real.ts`) and on a simulated one.
 */
import type { HostPort } from "../host-port.ts";

export interface Platform {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly network: Network;
  readonly disk: Disk;
  /** Null where there is no IP multicast. */
  readonly datagrams: Datagrams | null;
}

/** All in milliseconds. */
export interface Clock {
  /** Time that only goes forwards, in fractions. It stands still while the machine sleeps. */
  now(): number;
  /** Since 1970, in whole milliseconds. It goes on while the machine sleeps, and may be set. */
  wall(): number;
  /** Since 1970, in fractions: what trace entries of different processes are put in order by. */
  stamp(): number;
}

export interface Timers {
  /** Runs it once, `ms` from now or later, or up to 2 ms earlier: Node counts whole milliseconds. `ms` may be 0, negative or a fraction, and is at most `MAX_WAIT_MS`. */
  after(ms: number, run: () => void): Timer;
  /** Runs it again and again. */
  every(ms: number, run: () => void): Timer;
  /** Runs it after what is under way and what has arrived: `setImmediate`. */
  soon(run: () => void): Timer;
  /** Keeps it from running; null and a timer that has run out are no mistake. */
  cancel(timer: Timer | null): void;
}

export interface Timer {
  /** Lets the process end although the timer has not run out. */
  unref(): this;
}

export interface Random {
  /** 0 ≤ x < 1. */
  fraction(): number;
  /** A whole number from 0 to `below` − 1, with `below` < 2^48, that nobody can foresee. */
  natural(below: number): number;
  /** A name that nobody else has: at most 36 letters, digits and hyphens. */
  name(): string;
}

// Network.

export interface Network {
  /** Takes nothing before it is opened. @throws UsageError for certificates that cannot be. */
  listener(options: ListenerOptions): Listener;
  /** Begins to connect. `onReady`: it may be written to now. It is told of failures by "error" and "close", and never before it returns. */
  dial(address: HostPort, tls: DialTls | null, onReady: () => void): Stream;
}

/** PEM texts. The certificate must carry the DNS name `node-<id>` and be signed by `ca`. */
export interface TlsMaterial {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface DialTls extends TlsMaterial {
  /** The DNS name that the other end's certificate must carry. */
  readonly name: string;
}

export interface ListenerOptions {
  readonly tls: TlsMaterial | null;
  /** How long TLS may take to be agreed on. */
  readonly handshakeTimeoutMs: number;
  /** So many streams may be open at once: others are closed, and `onDropped` is told from where. */
  readonly maxStreams: number;
  /** A stream has been made; with TLS nothing can be read from it yet. */
  onMade(stream: Stream): void;
  /** A stream may be read: the one that was made, or with TLS another in its place, which has the DNS names of the other end's certificate. */
  onReady(stream: Stream, names: readonly string[] | null): void;
  onDropped(from: string | undefined): void;
  /** No TLS was agreed on. */
  onTlsRefused(stream: Stream, why: string): void;
  /** A stream could not be taken. */
  onError(error: Error): void;
}

export interface Listener {
  /** @throws an error with the system's `code`, such as EADDRINUSE. */
  open(address: HostPort): Promise<void>;
  /** Streams from now on are proved with these; those that are open stay. @throws UsageError for certificates that cannot be. */
  renew(tls: TlsMaterial): void;
  /** Takes no more streams; resolves once all have been closed. Also of one that is not open. */
  close(): Promise<void>;
}

/**
 * Bytes in order in both directions, as `net.Socket` has them, which is the real platform's. Its listeners are never called while
 * one of its methods is.
 */
export interface Stream {
  /** Returns false if it would be better to wait for "drain". The bytes must not be changed after it. */
  write(bytes: Buffer): boolean;
  /** Writes these last bytes, then closes this direction; the other one is read to its end. */
  end(bytes: Buffer): unknown;
  /** Closes both directions at once; what has not left is lost. The other end hears of it as "close", or as the error ECONNRESET and "close". */
  destroy(): unknown;
  /** Neither ended nor destroyed nor broken. True while it connects. */
  readonly writable: boolean;
  /** Whether a write has returned false and "drain" has not come yet. */
  readonly writableNeedDrain: boolean;
  readonly destroyed: boolean;
  /** Where the other end is; the two together are of one stream alone. */
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "drain" | "close", listener: () => void): unknown;
  /** With a `code`: ECONNREFUSED if nobody listens there. After it comes "close". */
  on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
  once(event: "close", listener: () => void): unknown;
}

// Disk. What the system refuses is thrown as its error, with `code` and `syscall`.

export interface Disk {
  /** Makes the folder and those around it, durably, unless it is there. */
  makeFolder(path: string): Promise<void>;
  /** Takes the folder, which has one writer. @throws EnvironmentError `journal-in-use` if another process has it. */
  claim(path: string): Promise<Folder>;
}

/** A folder that this process alone writes to. Files are named without a path. */
export interface Folder {
  /** Opens a file to read and write; null if there is none. */
  open(name: string): Promise<DiskFile | null>;
  /** Begins an empty file, in place of one of this name. Durable with the file's first `sync`. */
  create(name: string): Promise<DiskFile>;
  /** Gives a file another name, in place of what had that. All or nothing, and durable once it resolves. */
  rename(from: string, to: string): Promise<void>;
  /** The names of its files. */
  list(): Promise<string[]>;
  /** Reads a whole file, at once. */
  read(name: string): Buffer;
  /** Removes a file, if there is one. */
  remove(name: string): Promise<void>;
  /** Lets others take the folder. */
  release(): Promise<void>;
}

export interface DiskFile {
  size(): Promise<number>;
  readAll(): Promise<Buffer>;
  /** Fills `into` from this place of the file on, at once; returns how many bytes there were: fewer only at its end. */
  read(into: Buffer, at: number): number;
  /** Writes all bytes. Until the next sync a crash may leave any part of them, or none. */
  write(bytes: Buffer, at: number): Promise<void>;
  /** The same, and durable once it resolves: as `write` and then `datasync`, and cheaper where the system can. What was written before by `write` alone is not. */
  writeDurably(bytes: Buffer, at: number): Promise<void>;
  truncate(length: number): Promise<void>;
  /** Makes content and length durable: `fdatasync`. */
  datasync(): Promise<void>;
  /** Makes all of it durable: `fsync`. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

// IP multicast.

export interface Datagrams {
  /** The IPv4 addresses of this machine. */
  interfaces(): readonly { readonly name: string; readonly address: string }[];
  /** @throws Error of the system if the port is taken by a program of another kind, or the interface has no multicast. */
  open(group: DatagramGroup, listener: DatagramListener): Promise<DatagramSockets>;
}

export interface DatagramGroup {
  /** The multicast address. */
  readonly group: string;
  readonly port: number;
  /** The IPv4 address of the interface that leads to the others. */
  readonly interface: string;
  /** How many routers a datagram may pass. */
  readonly ttl: number;
}

export interface DatagramSockets {
  send(datagram: Buffer): void;
  close(): void;
}

export interface DatagramListener {
  onDatagram(datagram: Buffer, address: string): void;
  onUnsent(error: NodeJS.ErrnoException): void;
  onBroken(error: Error): void;
}
