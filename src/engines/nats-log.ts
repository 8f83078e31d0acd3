/**
 * One process's view of the log in a JetStream stream. It appends requests, follows all records, and computes the state
 * from them. Sequence numbers have no gaps, because messages are removed only from the beginning of the stream. Once a
 * snapshot of the state after record n is complete in the stream, the stream is truncated to begin with record n + 1. A
 * process that starts to follow the stream looks for that snapshot.
 */
import { type LogRecord, readRecord, writtenRecord } from "./nats-record.ts";
import { type LogAnswer, type LogRequest, LogState } from "./nats-state.ts";
import { refused, StoreError } from "./store.ts";

/** A stored message. */
export interface KeptMessage {
  readonly seq: number;
  readonly ms: number;
  readonly data: Uint8Array;
}

/** The numbers of a stream's first and last records. */
export interface StreamBounds {
  readonly first: number;
  readonly last: number;
  readonly made: string;
  readonly isReplicated: boolean;
}

/** The stream operations that this module uses. */
export interface Stream {
  /** The maximum size of a message, in bytes. */
  readonly maxBytes: number;
  /**
   * Returns the numbers of the first and the last message, and the stream's creation time as `made`. If the stream is
   * replicated, a deposed leader may answer with stale numbers.
   */
  bounds(): Promise<StreamBounds>;
  /** @throws StoreError */
  append(data: Uint8Array): Promise<{ seq: number }>;
  /** Yields messages starting with this number, as they arrive, until the stream fails or the caller stops. */
  follow(from: number): AsyncIterable<KeptMessage>;
  /** Removes all messages with lower numbers. */
  cutOff(below: number): Promise<void>;
}

export interface NatsLogOptions {
  readonly stream: Stream;
  /** A name for this process that no other process has. */
  readonly writer: string;
  readonly sleep: (ms: number) => Promise<void>;
  /** Called when entries or sessions may have changed. */
  changed(): void;
  /**
   * How many records there are between snapshots. The process that writes a record whose number is a multiple of this
   * saves the state.
   */
  readonly saveEvery?: number;
  /**
   * How many bytes of records there are between snapshots. The process whose record completes this many bytes since the
   * last snapshot saves the state. So does the process whose record completes each further multiple, until a snapshot
   * is complete.
   */
  readonly saveEveryBytes?: number;
}

const SAVE_EVERY = 5_000;
const SAVE_EVERY_BYTES = 64 * 1024 * 1024;
const AGAIN_MS = 200;
/** The maximum number of records between a state and the last part of its snapshot. */
const MAX_EARLY_RECORDS = 100_000;
/** Room for the header of a part, in addition to its text. */
const PART_HEAD_BYTES = 200;

interface Waiting {
  resolve(answer: LogAnswer & { at: number }): void;
  reject(error: StoreError): void;
}

/** A snapshot with the parts received so far, and the records that follow its state. */
interface Beginning {
  readonly at: number;
  readonly parts: Map<number, string>;
  readonly early: KeptMessage[];
}

/** Appends requests to the stream, and applies all records. */
export class NatsLog {
  readonly #options: NatsLogOptions;
  readonly #stream: Stream;
  /** The state. Null while it is still being read. */
  #state: LogState | null = null;
  #beginning: Beginning | null = null;
  #made = "";
  #next = 1;
  #last: KeptMessage | null = null;
  #requests = 0;
  readonly #waiting = new Map<string, Waiting>();
  #atLeast: { readonly seq: number; readonly resolve: () => void; readonly reject: (error: StoreError) => void }[] = [];
  #isSaving = false;
  /**
   * The total size of the records since the last part of a snapshot. It is the same in every process that has seen a
   * snapshot.
   */
  #bytes = 0;
  #isReplicated: boolean | null = null;
  /** The current read barrier, which is shared by the reads in one turn of the event loop. */
  #barrier: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: NatsLogOptions) {
    this.#options = options;
    this.#stream = options.stream;
  }

  start(): void {
    void this.#run();
  }

  /** Rejects all pending calls. */
  close(): void {
    this.#isClosed = true;
    this.#giveUp("nats: closed");
  }

  /**
   * Returns the state, which includes every record that was in the stream when this was called.
   * @throws StoreError
   */
  async read(): Promise<LogState> {
    if (this.#isReplicated === true) await this.#pass();
    else {
      const { last, isReplicated } = await this.#stream.bounds();
      this.#isReplicated = isReplicated;
      await (isReplicated ? this.#pass() : this.#reach(last));
    }
    return this.#state ?? this.#unread();
  }

  /** Waits for a read barrier. An append needs a majority, and every acknowledged record comes before it. */
  #pass(): Promise<void> {
    if (this.#barrier === null) {
      this.#barrier = this.#appendNothing();
      queueMicrotask(() => (this.#barrier = null));
    }
    return this.#barrier;
  }

  async #appendNothing(): Promise<void> {
    try {
      await this.append({ type: "living", sessions: [] });
    } catch (error) {
      throw error instanceof StoreError ? new StoreError(error.message, false, { cause: error }) : error;
    }
  }

  /**
   * @returns the result of the request, with the number of its record
   * @throws StoreError
   */
  async append(request: LogRequest): Promise<LogAnswer & { at: number }> {
    this.#requests += 1;
    const id = `${this.#options.writer}-${this.#requests}`;
    const data = writtenRecord({ type: "request", id, request });
    if (data.length > this.#stream.maxBytes) throw tooLarge(data.length, this.#stream.maxBytes);
    const answer = new Promise<LogAnswer & { at: number }>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
    answer.catch(() => {}); // If the append fails, its error is thrown instead.
    try {
      await this.#stream.append(data);
    } catch (error) {
      this.#waiting.delete(id);
      throw error;
    }
    return answer;
  }

  /** Follows the stream, and starts over after each failure. */
  async #run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#follow();
      } catch {
        // The server is unreachable or has removed the next record. The next attempt finds out which.
      }
      if (!this.#isClosed) await this.#options.sleep(AGAIN_MS);
    }
  }

  async #follow(): Promise<void> {
    const { first, last, made, isReplicated } = await this.#stream.bounds();
    this.#isReplicated = isReplicated;
    if (made !== this.#made || this.#next < first || this.#next > last + 1) this.#begin(first, made);
    const known = this.#last !== null && this.#last.seq >= first ? this.#last : null;
    for await (const message of this.#stream.follow(known?.seq ?? this.#next)) {
      if (this.#isClosed) return;
      if (message.seq === known?.seq) {
        if (isSame(message, known)) continue;
        this.#made = ""; // The servers have lost records and continue from an earlier point.
        return;
      }
      if (message.seq !== this.#next) return;
      this.#next += 1;
      this.#last = message;
      if (this.#beginning === null) this.#take(message);
      else this.#takeEarly(message, this.#beginning);
    }
  }

  #begin(first: number, made: string): void {
    this.#made = made;
    this.#next = first;
    this.#last = null;
    if (this.#state !== null || this.#beginning !== null) this.#giveUp("nats: the stream is being read again");
    this.#beginning = first <= 1 ? null : { at: first - 1, parts: new Map(), early: [] };
    this.#state = first <= 1 ? new LogState() : null;
  }

  /** Collects records until the snapshot at the beginning of the stream is complete. */
  #takeEarly(message: KeptMessage, beginning: Beginning): void {
    const record = readRecord(message.data);
    beginning.early.push(record?.type === "part" ? { ...message, data: new Uint8Array() } : message);
    if (beginning.early.length > MAX_EARLY_RECORDS) throw new Error("the stream has no snapshot");
    if (record?.type !== "part" || record.at !== beginning.at) return;
    beginning.parts.set(record.index, record.text);
    if (beginning.parts.size < record.count) return;
    const text = Array.from({ length: record.count }, (_, index) => beginning.parts.get(index) ?? "").join("");
    this.#state = LogState.restore(text);
    this.#beginning = null;
    for (const early of beginning.early) this.#take(early);
  }

  #take({ seq, ms, data }: KeptMessage): void {
    const state = this.#state as LogState;
    const record = readRecord(data);
    const request = record?.type === "request" ? record.request : null;
    const answer = state.apply(seq, ms, request);
    const isDue = this.#isSaveDue(seq, data.length);
    if (record?.type === "part" || data.length === 0) this.#bytes = 0; // A part collected earlier has been emptied.
    if (record?.type === "request") this.#answer(record, seq, answer, isDue);
    const [reached, rest] = [
      this.#atLeast.filter((each) => each.seq <= seq),
      this.#atLeast.filter((each) => each.seq > seq),
    ];
    this.#atLeast = rest;
    for (const { resolve } of reached) resolve();
    if (request?.type === "commit" || request?.type === "end") this.#options.changed();
  }

  #isSaveDue(seq: number, bytes: number): boolean {
    const { saveEvery = SAVE_EVERY, saveEveryBytes = SAVE_EVERY_BYTES } = this.#options;
    const before = Math.floor(this.#bytes / saveEveryBytes);
    this.#bytes += bytes;
    return seq % saveEvery === 0 || Math.floor(this.#bytes / saveEveryBytes) > before;
  }

  #answer({ id }: LogRecord & { type: "request" }, seq: number, answer: LogAnswer, isSaveDue: boolean): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    waiting.resolve({ ...answer, at: seq });
    if (isSaveDue) void this.#save();
  }

  #reach(seq: number): Promise<void> {
    if (this.#isClosed) return Promise.reject(new StoreError("nats: closed", false));
    if (this.#state !== null && this.#state.at >= seq) return Promise.resolve();
    return new Promise((resolve, reject) => this.#atLeast.push({ seq, resolve, reject }));
  }

  /**
   * Appends a snapshot of the state, and removes the records that it covers. If another process does the same, the
   * later snapshot wins.
   */
  async #save(): Promise<void> {
    if (this.#isSaving || this.#state === null) return;
    this.#isSaving = true;
    const { at } = this.#state;
    const parts = inParts(this.#state.save(), this.#stream.maxBytes - PART_HEAD_BYTES);
    try {
      for (const [index, text] of parts.entries()) {
        await this.#stream.append(writtenRecord({ type: "part", at, index, count: parts.length, text }));
      }
      await this.#stream.cutOff(at + 1);
    } catch {
      // A later record triggers the next attempt.
    } finally {
      this.#isSaving = false;
    }
  }

  #giveUp(reason: string): void {
    for (const { reject } of this.#waiting.values()) reject(new StoreError(reason, true));
    for (const { reject } of this.#atLeast) reject(new StoreError(reason, false));
    this.#waiting.clear();
    this.#atLeast = [];
  }

  #unread(): never {
    throw new StoreError("nats: the stream is being read", false);
  }
}

const tooLarge = (bytes: number, most: number): Error =>
  refused("too-large", `expected a change of at most ${most} bytes, got ${bytes}: NATS does not accept more`);

const isSame = (a: KeptMessage, b: KeptMessage): boolean =>
  a.ms === b.ms && a.data.length === b.data.length && a.data.every((byte, at) => byte === b.data[at]);

/** Splits text into parts of at most `bytes` bytes in UTF-8. */
function inParts(text: string, bytes: number): string[] {
  const parts: string[] = [];
  const length = Math.floor(bytes / 3); // A code unit takes up at most three bytes in UTF-8.
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + length);
    const last = text.charCodeAt(to - 1);
    if (to < text.length && last >= 0xd800 && last < 0xdc00) to -= 1; // Do not split a surrogate pair.
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}
