/**
 * A member's environment: time, timers, randomness, network and disk. No code above this accesses a clock, disk or socket
 * directly, so a member runs unchanged on the real platform (`real.ts`) and on a simulated one.
 */
import type { HostPort } from "../host-port.ts";

export interface Platform {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly network: Network;
  readonly disk: Disk;
  /** Null if the platform has no IP multicast. */
  readonly datagrams: Datagrams | null;
}

/** All times in milliseconds. */
export interface Clock {
  /** A monotonic clock, in fractional milliseconds. It stops while the machine sleeps. */
  now(): number;
  /** Milliseconds since 1970, as an integer. It continues while the machine sleeps, and may be set. */
  wall(): number;
  /** Milliseconds since 1970, with fractions. Used to order trace entries of different processes. */
  stamp(): number;
}

export interface Timers {
  /**
   * Runs the callback once, after `ms`. It may be up to 2 ms early, since Node counts whole milliseconds. `ms` may be 0,
   * negative or fractional, and is at most `MAX_WAIT_MS`.
   */
  after(ms: number, run: () => void): Timer;
  /** Runs the callback repeatedly. */
  every(ms: number, run: () => void): Timer;
  /** Runs the callback after the current work and all input that has arrived: `setImmediate`. */
  soon(run: () => void): Timer;
  /** Cancels a timer. Does nothing for null or a timer that has expired. */
  cancel(timer: Timer | null): void;
}

export interface Timer {
  /** Lets the process exit while the timer is running. */
  unref(): this;
}

export interface Random {
  /** A number x with 0 ≤ x < 1. */
  fraction(): number;
  /** An unpredictable integer from 0 to `below` − 1, with `below` < 2^48. */
  natural(below: number): number;
  /** A globally unique name of at most 36 letters, digits and hyphens. */
  name(): string;
}

// Network.

export interface Network {
  /** Creates a listener, which accepts nothing until it is opened. @throws UsageError if the certificates are invalid */
  listener(options: ListenerOptions): Listener;
  /**
   * Starts to connect. `onReady` is called when the stream can be written to. Failures are reported as "error" and "close"
   * events, never before this returns.
   */
  dial(address: HostPort, tls: DialTls | null, onReady: () => void): Stream;
}

/** PEM texts. The certificate must contain the DNS name `node-<id>` and be signed by `ca`. */
export interface TlsMaterial {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface DialTls extends TlsMaterial {
  /** The DNS name that the other end's certificate must contain. */
  readonly name: string;
}

export interface ListenerOptions {
  readonly tls: TlsMaterial | null;
  /** The time limit of a TLS handshake. */
  readonly handshakeTimeoutMs: number;
  /** How many streams can be open at once. Others are closed, and `onDropped` is called with their address. */
  readonly maxStreams: number;
  /** Called when a stream is connected. With TLS nothing can be read from it yet. */
  onMade(stream: Stream): void;
  /**
   * Called when a stream can be read. With TLS it is another stream than in `onMade`, with the DNS names of the other end's
   * certificate.
   */
  onReady(stream: Stream, names: readonly string[] | null): void;
  onDropped(from: string | undefined): void;
  /** Called when a TLS handshake fails. */
  onTlsRefused(stream: Stream, why: string): void;
  /** Called when a stream could not be accepted. */
  onError(error: Error): void;
}

export interface Listener {
  /** @throws an error with the system's `code`, such as EADDRINUSE */
  open(address: HostPort): Promise<void>;
  /** Uses these certificates for new streams. Open streams are kept. @throws UsageError if the certificates are invalid */
  renew(tls: TlsMaterial): void;
  /** Stops accepting, and resolves once all streams are closed. Allowed even if the listener is not open. */
  close(): Promise<void>;
}

/**
 * A bidirectional, ordered byte stream, like `net.Socket`, which the real platform uses. Its listeners are never called from
 * within one of its methods.
 */
export interface Stream {
  /** Returns false if the caller should wait for "drain" before writing more. Do not change the bytes afterwards. */
  write(bytes: Buffer): boolean;
  /** Writes these last bytes, then closes this direction. The other direction can still be read to its end. */
  end(bytes: Buffer): unknown;
  /**
   * Closes both directions immediately. Unsent bytes are lost. The other end sees "close", or the error ECONNRESET and then
   * "close".
   */
  destroy(): unknown;
  /** True unless the stream has ended, was destroyed or is broken. Also true while it connects. */
  readonly writable: boolean;
  /** Whether a write has returned false and no "drain" has followed yet. */
  readonly writableNeedDrain: boolean;
  readonly destroyed: boolean;
  /** Address and port of the other end. Together they are unique among streams. */
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "drain" | "close", listener: () => void): unknown;
  /** The error has a `code`, such as ECONNREFUSED if no process listens there. "close" follows. */
  on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
  once(event: "close", listener: () => void): unknown;
}

// Disk. Errors of the operating system are thrown unchanged, with `code` and `syscall`.

export interface Disk {
  /** Creates the folder and its parents durably, unless it exists. */
  makeFolder(path: string): Promise<void>;
  /** Takes the folder for one writer. @throws EnvironmentError `journal-in-use` if another process has it */
  claim(path: string): Promise<Folder>;
}

/** A folder that only this process writes to. Files are named without a path. */
export interface Folder {
  /** Opens a file for reading and writing. Null if it does not exist. */
  open(name: string): Promise<DiskFile | null>;
  /** Creates an empty file, replacing any file of that name. Durable after the file's first `sync`. */
  create(name: string): Promise<DiskFile>;
  /** Renames a file, replacing any file of the new name. Atomic, and durable when it resolves. */
  rename(from: string, to: string): Promise<void>;
  /** The names of its files. */
  list(): Promise<string[]>;
  /** Reads a whole file synchronously. */
  read(name: string): Buffer;
  /** Removes a file if it exists. */
  remove(name: string): Promise<void>;
  /** Releases the folder, so that others can take it. */
  release(): Promise<void>;
}

export interface DiskFile {
  size(): Promise<number>;
  readAll(): Promise<Buffer>;
  /**
   * Reads into `into` from this offset, synchronously. Returns the number of bytes read, which is smaller only at the end of
   * the file.
   */
  read(into: Buffer, at: number): number;
  /** Writes all bytes. Until the next sync, a crash may keep any part of them, or none. */
  write(bytes: Buffer, at: number): Promise<void>;
  /** Like `write` and then `datasync`, but cheaper on some systems. It does not make earlier calls of `write` durable. */
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
  /** @throws the system's Error if another kind of program uses the port, or the interface has no multicast */
  open(group: DatagramGroup, listener: DatagramListener): Promise<DatagramSockets>;
}

export interface DatagramGroup {
  /** The multicast address. */
  readonly group: string;
  readonly port: number;
  /** The IPv4 address of the interface that leads to the other members. */
  readonly interface: string;
  /** How many routers a datagram can pass. */
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
