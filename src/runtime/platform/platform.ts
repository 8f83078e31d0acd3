/**
 * A member's environment: time, timers, randomness, network and disk. No code above this level accesses a clock, disk
 * or socket directly, so a member runs unchanged on the real platform (`real.ts`) and on a simulated one.
 */
import type { HostPort } from "../host-port.ts";

/** A member's environment. */
export interface Platform {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly network: Network;
  readonly disk: Disk;
  /** IP multicast. Null if the platform does not support it. */
  readonly datagrams: Datagrams | null;
}

/** The clocks. All times are in milliseconds. */
export interface Clock {
  /**
   * Returns the time of a monotonic clock in milliseconds, with a fractional part. The clock stops while the machine
   * sleeps.
   */
  now(): number;
  /**
   * Returns the milliseconds since 1970 as an integer. The clock keeps running while the machine sleeps, and can be
   * set.
   */
  wall(): number;
  /**
   * Returns the milliseconds since 1970, with a fractional part. Used to order trace entries from different processes.
   */
  stamp(): number;
}

/** Timers on the monotonic clock. */
export interface Timers {
  /**
   * Runs the callback once, after `ms`. It may run up to 2 ms early, since Node counts whole milliseconds. `ms` may be
   * 0, negative or fractional, and must not exceed `MAX_WAIT_MS`.
   */
  after(ms: number, run: () => void): Timer;
  /** Runs the callback repeatedly. */
  every(ms: number, run: () => void): Timer;
  /** Runs the callback after the current work and any input that has already arrived, like `setImmediate`. */
  soon(run: () => void): Timer;
  /** Cancels a timer. Does nothing for null or a timer that has expired. */
  cancel(timer: Timer | null): void;
}

/** A running timer. */
export interface Timer {
  /** Lets the process exit while the timer is still running. */
  unref(): this;
}

/** Randomness that other processes cannot predict. */
export interface Random {
  /** Returns a number x with 0 ≤ x < 1. */
  fraction(): number;
  /** Returns an unpredictable integer from 0 to `below` − 1, with `below` < 2^48. */
  natural(below: number): number;
  /** Returns a globally unique name of at most 36 letters, digits and hyphens. */
  name(): string;
}

// Network

/** Streams to and from other processes. */
export interface Network {
  /**
   * Creates a listener, which accepts no connections until it is opened.
   * @throws UsageError if the certificates are invalid
   */
  listener(options: ListenerOptions): Listener;
  /**
   * Starts connecting. `onReady` is called when the stream can be written to. Failures are reported as "error" and
   * "close" events, never before this method returns.
   */
  dial(address: HostPort, tls: DialTls | null, onReady: () => void): Stream;
}

/** PEM data. The certificate must contain the DNS name `node-<id>` and be signed by `ca`. */
export interface TlsMaterial {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** The certificates of a dialer. */
export interface DialTls extends TlsMaterial {
  /** The DNS name that the other end's certificate must contain. */
  readonly name: string;
}

export interface ListenerOptions {
  readonly tls: TlsMaterial | null;
  /** The time limit for a TLS handshake. */
  readonly handshakeTimeoutMs: number;
  /**
   * The maximum number of open streams. Any further streams are closed, and `onDropped` is called with their address.
   */
  readonly maxStreams: number;
  /** Called when a stream is connected. With TLS, it cannot be read yet. */
  onMade(stream: Stream): void;
  /**
   * Called when a stream can be read. With TLS, this is not the stream passed to `onMade`, and `names` contains the DNS
   * names in the other end's certificate.
   */
  onReady(stream: Stream, names: readonly string[] | null): void;
  onDropped(from: string | undefined): void;
  /** Called when a TLS handshake fails. */
  onTlsRefused(stream: Stream, why: string): void;
  /** Called when a stream could not be accepted. */
  onError(error: Error): void;
}

/** Accepts streams at an address. */
export interface Listener {
  /**
   * Starts listening.
   * @throws an error with the system's `code`, such as EADDRINUSE
   */
  open(address: HostPort): Promise<void>;
  /**
   * Uses these certificates for new streams. Open streams stay open.
   * @throws UsageError if the certificates are invalid
   */
  renew(tls: TlsMaterial): void;
  /**
   * Stops accepting streams, and resolves once all streams are closed. May be called even if the listener is not open.
   */
  close(): Promise<void>;
}

/**
 * A bidirectional, ordered byte stream, like `net.Socket`, which the real platform uses. Its listeners are never called
 * from within one of its methods.
 */
export interface Stream {
  /**
   * Writes bytes, which must not be modified afterwards. Returns false if the caller should wait for "drain" before
   * writing more.
   */
  write(bytes: Buffer): boolean;
  /** Writes these final bytes, then closes this direction. The other direction can still be read to its end. */
  end(bytes: Buffer): unknown;
  /**
   * Closes both directions immediately. Unsent bytes are lost. The other end gets either "close", or the error
   * ECONNRESET and then "close".
   */
  destroy(): unknown;
  /**
   * Whether the stream can be written to. False once it has ended, been destroyed or broken. True while it is
   * connecting.
   */
  readonly writable: boolean;
  /** Whether a write has returned false and there has been no "drain" since. */
  readonly writableNeedDrain: boolean;
  readonly destroyed: boolean;
  /** The address of the other end. The combination of address and port is unique among all streams. */
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "drain" | "close", listener: () => void): unknown;
  /**
   * Called with an error that has a `code`, such as ECONNREFUSED if no process is listening at the address. "close"
   * follows.
   */
  on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
  once(event: "close", listener: () => void): unknown;
}

// Disk. Errors from the operating system are thrown unchanged, with `code` and `syscall`.

/** Journal folders. */
export interface Disk {
  /** Creates the folder and its parents durably, unless they already exist. */
  makeFolder(path: string): Promise<void>;
  /**
   * Locks the folder, so that only this process writes to it.
   * @throws EnvironmentError `journal-in-use` if another process holds it
   */
  claim(path: string): Promise<Folder>;
}

/** A folder that only this process writes to. Files are identified by names without a path. */
export interface Folder {
  /** Opens a file for reading and writing. Returns null if it does not exist. */
  open(name: string): Promise<DiskFile | null>;
  /** Creates an empty file, replacing any existing file with that name. The file is durable after its first `sync`. */
  create(name: string): Promise<DiskFile>;
  /**
   * Renames a file, replacing any existing file with the new name. The rename is atomic, and durable once this
   * resolves.
   */
  rename(from: string, to: string): Promise<void>;
  /** Returns the names of the files. */
  list(): Promise<string[]>;
  /** Reads a whole file synchronously. */
  read(name: string): Buffer;
  /** Removes a file if it exists. */
  remove(name: string): Promise<void>;
  /** Releases the folder, so that another process can take it. */
  release(): Promise<void>;
}

/** An open file. */
export interface DiskFile {
  size(): Promise<number>;
  readAll(): Promise<Buffer>;
  /**
   * Reads into `into` from this offset, synchronously. Returns the number of bytes read, which is less than the size of
   * the buffer only at the end of the file.
   */
  read(into: Buffer, at: number): number;
  /** Writes all the bytes. Until the next sync, a crash may leave any part of them on the disk, or none. */
  write(bytes: Buffer, at: number): Promise<void>;
  /**
   * Like `write` followed by `datasync`, but cheaper on some systems. Does not make earlier calls to `write` durable.
   */
  writeDurably(bytes: Buffer, at: number): Promise<void>;
  truncate(length: number): Promise<void>;
  /** Makes content and length durable, like `fdatasync`. */
  datasync(): Promise<void>;
  /** Makes content and metadata durable, like `fsync`. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

// IP multicast

/** Sends and receives IP multicast datagrams. */
export interface Datagrams {
  /** Returns the IPv4 addresses of this machine. */
  interfaces(): readonly { readonly name: string; readonly address: string }[];
  /**
   * @throws the system's Error if another program uses the port exclusively, or if the interface does not support
   * multicast
   */
  open(group: DatagramGroup, listener: DatagramListener): Promise<DatagramSockets>;
}

export interface DatagramGroup {
  /** The multicast address. */
  readonly group: string;
  readonly port: number;
  /** The IPv4 address of the interface through which the other members are reached. */
  readonly interface: string;
  /** The maximum number of routers that a datagram may pass through. */
  readonly ttl: number;
}

/** A group's open sockets. */
export interface DatagramSockets {
  send(datagram: Buffer): void;
  close(): void;
}

/** Receives events from the sockets. */
export interface DatagramListener {
  onDatagram(datagram: Buffer, address: string): void;
  onUnsent(error: NodeJS.ErrnoException): void;
  onBroken(error: Error): void;
}
