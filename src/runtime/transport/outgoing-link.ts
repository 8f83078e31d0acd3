/**
 * The link to one peer. Messages are sent in order, many per frame, and are buffered until the peer acknowledges them.
 * When a connection breaks, the link dials again and resends unacknowledged messages, so as long as both processes keep
 * running, no message is lost or received twice. Messages to a crashed process are reported as lost once a later run of
 * that process has identified itself. A refused connection does not prove a crash, since an old address, a proxy or a
 * firewall may have caused it.
 */
import { InvariantViolation } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { LossReason } from "../../trace/entry.ts";
import type { FaultInjector } from "../fault-injector.ts";
import type { Log } from "../log.ts";
import { type Counts, count } from "../metrics.ts";
import type { Platform, Stream, Timer } from "../platform/platform.ts";
import { type Codec, MalformedBytes, Reader, Writer } from "../wire.ts";
import { inPlainWords } from "./certificate-flaws.ts";
import { DelayLine } from "./delay-line.ts";
import {
  ackCodec,
  closeFrame,
  emptyFrame,
  FRAME,
  frameSplitter,
  HEADER_BYTES,
  type Hello,
  helloCodec,
  LENGTH_BYTES,
  openFrame,
  refuseCodec,
  welcomeCodec,
} from "./frames.ts";
import { differences, type GroupIdentity } from "./identity.ts";
import type { Limits } from "./limits.ts";

export interface OutgoingOptions<M> {
  readonly platform: Platform;
  readonly peer: NodeId;
  /**
   * The last number used by an earlier link from this process, which the peer continues. Default: 0, for the first link.
   */
  readonly after?: number | undefined;
  readonly hello: Omit<Hello, "identity">;
  readonly identity: GroupIdentity;
  readonly codec: Codec<M>;
  readonly limits: Limits;
  readonly injector: FaultInjector;
  readonly counts: Counts;
  readonly log: Log;
  /**
   * Connects to the peer. `failures` is the number of failed attempts so far. `onReady` is called when the stream can
   * be written to.
   */
  readonly connect: (onReady: () => void, failures: number) => Stream;
  /**
   * Called when messages `first` to `last` are lost. A peer that crashed may have received some of them without
   * acknowledging them.
   */
  readonly onLost: (first: number, last: number, why: LossReason) => void;
  /**
   * Whether a message is intended for any run of the peer's process, and therefore survives its crash. Default: false
   * for all messages.
   */
  readonly outlives?: ((message: M) => boolean) | undefined;
  /** Called for a failure that only a bug in this code can cause. */
  readonly onFatal: (error: Error) => void;
}

/** The result of sending a message: its number on this link, or why it was not sent. */
export type Sent =
  | { readonly number: number; readonly lost: null }
  | { readonly number: null; readonly lost: LossReason };

/**
 * A frame is sent once it reaches this size, so that the peer can work while this process continues. For the reason,
 * see docs/internals/decisions.md.
 */
const FULL_FRAME_BYTES = 2 * 1024;
const MIN_BACKOFF_MS = 25;
const MAX_BACKOFF_MS = 1_000;
/** If messages remain unacknowledged for this long, the connection is considered dead, and the link dials again. */
const SILENCE_MS = 10_000;
/**
 * The overhead of a queue entry. It is added to the size of the entry, so that the limit also applies to many small
 * entries.
 */
const ENTRY_COST_BYTES = 200;
/** The size of a frame without its messages: its kind and the number of its first message. */
const FRAME_EXTRA_BYTES = 9;
/** The maximum size of a reply. Acknowledgements and refusals are small. */
const MAX_REPLY_BYTES = 2_048;

interface SealedFrame {
  readonly bytes: Buffer;
  readonly first: number;
  readonly last: number;
}

export class OutgoingLink<M> {
  readonly #options: OutgoingOptions<M>;
  status: "open" | "dialing" | "waiting" = "waiting";
  #stream: Stream | null = null;
  #closed = false;
  #backoffMs = MIN_BACKOFF_MS;
  #redial: Timer | null = null;
  #incarnation: number | null = null;
  /** The last known run of the peer's process when the connection was dialed. */
  #knownAtDial: number | null = null;
  /** The number of failed attempts to connect since the last welcome. */
  #failures = 0;
  #lastProgress = 0;
  #watchdog: Timer | null = null;

  /** The number of the last accepted message, and the number of the last one that is in a finished frame. */
  #taken: number;
  #framed: number;
  readonly #held: DelayLine;
  /** The frame being written, and the number of its first message, or 0 between frames. */
  readonly #writer = new Writer();
  #first = 0;
  #flushScheduled = false;
  /**
   * Finished frames that have not been acknowledged yet. The first `#handed` of them have been written to the stream.
   */
  #frames: SealedFrame[] = [];
  #handed = 0;
  #frameBytes = 0;
  #confirmed = 0;
  #blocked = false;

  constructor(options: OutgoingOptions<M>) {
    this.#options = options;
    this.#taken = options.after ?? 0;
    this.#framed = this.#taken;
    this.#held = new DelayLine(options.platform, (message) => this.#append(message));
  }

  get queuedBytes(): number {
    return this.#frameBytes + this.#held.bytes + (this.#first > 0 ? this.#writer.position : 0);
  }

  /** The number of the last accepted message. */
  get last(): number {
    return this.#taken;
  }

  /** Resolves once the first attempt to reach the peer has succeeded or failed. */
  tried: Promise<void> = Promise.resolve();

  open(): void {
    this.#watchdog = this.#options.platform.timers.every(SILENCE_MS / 4, () => this.#checkSilence()).unref();
    this.tried = new Promise((resolve) => this.#dial(resolve));
  }

  send(message: M): Sent {
    const verdict = this.#options.injector.verdict(this.#options.peer);
    if (typeof verdict === "string") return this.#refuse(verdict);
    if (this.#isFull()) {
      const { peer } = this.#options;
      const text = `the queue to node ${peer} is full (${this.queuedBytes} bytes): dropping messages to it`;
      this.#options.log.once(`overflow ${peer}`, text, { event: "queue-full", peer });
      return this.#refuse("overflow");
    }
    if (verdict > 0 || this.#held.length > 0) this.#hold(message, verdict);
    else this.#write(message);
    this.#taken += 1;
    return { number: this.#taken, lost: null };
  }

  /** Called when the peer has identified the run of its process. Messages to a different run are lost. */
  noteIncarnation(incarnation: number): void {
    if (this.#incarnation !== incarnation && this.#incarnation !== null) {
      this.#succeeded();
      if (this.status === "open") this.#abandon(); // The link is still connected to the old process.
    }
    this.#incarnation = incarnation;
    this.retry();
  }

  /** Dials without waiting for the backoff to end, because the peer is probably reachable now. */
  retry(): void {
    this.#backoffMs = MIN_BACKOFF_MS;
    if (this.status === "waiting" && !this.#closed) this.#dial();
  }

  /** Dials again because the peer's address has changed. */
  redial(): void {
    this.#backoffMs = MIN_BACKOFF_MS;
    if (this.#stream === null) this.retry();
    else this.#stream.destroy();
  }

  close(): void {
    this.#closed = true;
    const { timers } = this.#options.platform;
    timers.cancel(this.#watchdog);
    timers.cancel(this.#redial);
    this.#held.clear();
    this.#stream?.destroy();
  }

  #refuse(lost: LossReason): Sent {
    count(this.#options.counts.lost, lost);
    return { number: null, lost };
  }

  // From messages to frames

  #isFull(): boolean {
    const entries = this.#frames.length + this.#held.length;
    return this.queuedBytes + entries * ENTRY_COST_BYTES >= this.#options.limits.maxQueueBytes;
  }

  #hold(message: M, delayMs: number): void {
    const into = new Writer(64);
    this.#options.codec.write(message, into);
    this.#requireFit(into.position);
    this.#held.hold(into.bytes(), delayMs);
  }

  /** Adds a message that has already been encoded. */
  #append(message: Buffer): void {
    this.#begin();
    const start = this.#writer.position;
    this.#writer.append(message);
    this.#written(start);
  }

  #write(message: M): void {
    this.#begin();
    const start = this.#writer.position;
    try {
      this.#options.codec.write(message, this.#writer);
      this.#requireFit(this.#writer.position - start);
    } catch (error) {
      this.#writer.position = start; // A partial message must not be sent.
      if (this.#first > this.#framed) this.#first = 0;
      throw error;
    }
    this.#written(start);
  }

  #requireFit(bytes: number): void {
    const { maxFrameBytes } = this.#options.limits;
    if (bytes + FRAME_EXTRA_BYTES > maxFrameBytes)
      throw new InvariantViolation("bad-message", `a message does not fit in a frame of ${maxFrameBytes} bytes`);
  }

  /** Begins a frame if there is none. */
  #begin(): void {
    if (this.#first > 0) return;
    this.#first = this.#framed + 1;
    openFrame(this.#writer, FRAME.messages);
    this.#writer.natural(this.#first);
  }

  /**
   * Completes a message that was written starting at `start`. If it makes the frame too large, moves it to a new one.
   */
  #written(start: number): void {
    const writer = this.#writer;
    if (writer.position - LENGTH_BYTES > this.#options.limits.maxFrameBytes) {
      const message = Buffer.from(writer.buffer.subarray(start, writer.position));
      writer.position = start;
      this.#seal();
      this.#begin();
      writer.append(message);
    }
    this.#framed += 1;
    if (writer.position >= FULL_FRAME_BYTES) this.#flush();
    else if (!this.#flushScheduled && !this.#blocked && this.status === "open") {
      this.#flushScheduled = true;
      queueMicrotask(this.#flush);
    }
  }

  readonly #flush = (): void => {
    this.#flushScheduled = false;
    this.#seal();
    this.#transmit();
  };

  #seal(): void {
    if (this.#first === 0) return;
    const bytes = closeFrame(this.#writer);
    this.#frames.push({ bytes, first: this.#first, last: this.#framed });
    this.#frameBytes += bytes.length;
    this.#first = 0;
  }

  #transmit(): void {
    const stream = this.#stream;
    if (this.status !== "open" || stream === null) return;
    while (!this.#blocked && this.#handed < this.#frames.length) {
      const { bytes } = this.#frames[this.#handed] as SealedFrame;
      if (this.#handed === 0) this.#lastProgress = this.#options.platform.clock.now();
      this.#handed += 1;
      this.#options.counts.bytesSent += bytes.length;
      this.#blocked = !stream.write(bytes);
    }
  }

  #acknowledged(received: number): void {
    if (received > this.#framed)
      throw new MalformedBytes(`${received} messages are acknowledged, but only ${this.#framed} were sent`);
    this.#confirmed = Math.max(this.#confirmed, received);
    let done = 0;
    for (; done < this.#frames.length; done++) {
      const frame = this.#frames[done] as SealedFrame;
      if (frame.last > received) break;
      this.#frameBytes -= frame.bytes.length;
    }
    this.#frames.splice(0, done);
    this.#handed = Math.max(0, this.#handed - done);
    this.#lastProgress = this.#options.platform.clock.now();
  }

  /**
   * Handles a new run of the peer's process. Other nodes may learn of the new run before this link does, and this node
   * may already have acted on that. So messages intended for any run must not be lost with the old run.
   */
  #succeeded(): void {
    const kept = this.#forAnyRun();
    this.#lose("crashed");
    for (const message of kept) {
      this.#taken += 1;
      this.#append(message);
    }
  }

  /** Returns the unacknowledged messages that are intended for any run, in encoded form. */
  #forAnyRun(): Buffer[] {
    const { codec, outlives } = this.#options;
    if (outlives === undefined) return [];
    this.#seal();
    return this.#frames.flatMap(({ bytes }) => {
      const kept: Buffer[] = [];
      const body = new Reader(bytes, HEADER_BYTES);
      for (let number = body.natural(); body.position < body.end; number++) {
        const start = body.position;
        if (outlives(codec.read(body)) && number > this.#confirmed) kept.push(bytes.subarray(start, body.position));
      }
      return kept;
    });
  }

  /** Reports all queued messages as lost. */
  #lose(why: LossReason): void {
    this.#seal();
    const first = Math.max(this.#frames[0]?.first ?? this.#framed + 1, this.#confirmed + 1);
    if (first <= this.#taken) {
      count(this.#options.counts.lost, why, this.#taken - first + 1);
      this.#options.onLost(first, this.#taken, why);
    }
    this.#frames = [];
    this.#frameBytes = 0;
    this.#handed = 0;
    this.#held.clear();
    this.#framed = this.#taken;
  }

  // The connection

  #dial(tried?: () => void): void {
    const { platform, limits } = this.#options;
    platform.timers.cancel(this.#redial);
    this.#redial = null;
    this.status = "dialing";
    this.#knownAtDial = this.#incarnation;
    const stream = this.#options.connect(() => {
      const { hello, identity, peer } = this.#options;
      stream.write(helloCodec.frame({ ...hello, identity: identity.toward(peer) }));
    }, this.#failures);
    this.#stream = stream;
    const deadline = platform.timers.after(limits.handshakeTimeoutMs, () => stream.destroy());
    stream.on(
      "data",
      this.#feeder(stream, () => platform.timers.cancel(deadline), tried),
    );
    stream.on("drain", () => {
      if (this.#stream !== stream) return;
      this.#blocked = false;
      this.#flush();
    });
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (this.#stream === stream) this.#failed(error);
    });
    stream.once("close", () => {
      platform.timers.cancel(deadline);
      tried?.();
      if (this.#stream === stream) this.#disconnected();
    });
  }

  #feeder(stream: Stream, welcomed: () => void, tried?: () => void): (chunk: Buffer) => void {
    const feed = frameSplitter(
      () => MAX_REPLY_BYTES,
      (kind, body) => {
        if (this.#stream !== stream) return false;
        if (kind === FRAME.welcome && this.status === "dialing") {
          welcomed();
          this.#welcomed(body);
          tried?.();
        } else if (kind === FRAME.ack && this.status === "open") this.#acknowledged(ackCodec.read(body).received);
        else if (kind === FRAME.probe) this.#proveAlive(stream);
        else if (kind === FRAME.refuse) return this.#refused(body);
        else throw new MalformedBytes(`unexpected frame of kind ${kind}`);
        return true;
      },
    );
    return (chunk) => {
      this.#options.counts.bytesReceived += chunk.length;
      try {
        feed(chunk);
      } catch (error) {
        if (!(error instanceof MalformedBytes)) return this.#options.onFatal(error as Error);
        const { peer } = this.#options;
        count(this.#options.counts.refused, "malformed");
        this.#options.log.once(`reply ${peer}`, `node ${peer} sent an invalid reply: ${error.message}`);
        stream.destroy();
      }
    };
  }

  #proveAlive(stream: Stream): void {
    // If data is queued, that data also proves that this process is alive.
    if (!stream.writableNeedDrain) stream.write(emptyFrame(FRAME.alive));
  }

  #welcomed(body: Reader): void {
    const { incarnation, received } = welcomeCodec.read(body);
    // A later run has connected since this link dialed, so this welcome comes from the earlier run.
    const isLate = this.#incarnation !== this.#knownAtDial && incarnation !== this.#incarnation;
    if (isLate) return void this.#stream?.destroy();
    if (this.#incarnation !== null && this.#incarnation !== incarnation) this.#succeeded();
    this.#incarnation = incarnation;
    if (this.#lastProgress > 0) this.#options.counts.reconnects += 1;
    this.status = "open";
    this.#failures = 0;
    this.#backoffMs = MIN_BACKOFF_MS;
    this.#handed = 0;
    this.#blocked = false;
    this.#acknowledged(received);
    this.#flush();
  }

  #refused(body: Reader): false {
    const { reason, detail, identity } = refuseCodec.read(body);
    const { peer } = this.#options;
    if (reason === "removed") this.#options.identity.onRemoved(peer);
    const isOfIdentity = differences.some((difference) => difference === reason);
    const text = `node ${peer} refuses this node (${reason}): ${detail}`;
    if (isOfIdentity)
      this.#options.identity.judge(peer, identity); // `judge` reports the difference.
    else this.#options.log.once(`refused ${peer} ${reason}`, text, { event: "refused-by-peer", peer, reason });
    if (reason === "malformed") this.#lose("dropped"); // Resending the same bytes would never succeed.
    if (reason !== "not-founded") this.#backoffMs = MAX_BACKOFF_MS;
    this.#stream?.destroy();
    return false;
  }

  /**
   * Handles a failed connection. Errors caused by a restart or a broken connection are not logged, since the link will
   * dial again.
   */
  #failed({ code, message }: NodeJS.ErrnoException): void {
    const { peer, log } = this.#options;
    if (code === "ECONNREFUSED" || code === "ECONNRESET" || code === "EPIPE") return;
    const fields = { event: "link-failed", peer };
    log.once(`link ${peer} ${code}`, `the link to node ${peer} fails: ${inPlainWords(message)}`, fields);
  }

  #abandon(): void {
    const stream = this.#stream;
    this.#stream = null;
    this.status = "waiting";
    stream?.destroy();
  }

  #disconnected(): void {
    this.#stream = null;
    if (this.status === "dialing") this.#failures += 1;
    this.status = "waiting";
    this.#handed = 0;
    if (this.#closed) return;
    const { timers, random } = this.#options.platform;
    this.#redial = timers.after(this.#backoffMs * (0.5 + random.fraction() / 2), () => this.#dial());
    this.#backoffMs = Math.min(this.#backoffMs * 2, MAX_BACKOFF_MS);
  }

  #checkSilence(): void {
    const waiting = this.status === "open" && this.#handed > 0;
    if (waiting && this.#options.platform.clock.now() - this.#lastProgress > SILENCE_MS) this.#stream?.destroy();
  }
}
