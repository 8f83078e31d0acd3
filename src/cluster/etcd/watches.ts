/**
 * etcd's service Watch. Each watch reports every change from its start revision on, in order and exactly once, no
 * matter how slowly its client reads.
 */
import { isOwn } from "../../protocols/service/keyspace/layout.ts";
import { ALL_FROM, covers } from "../../protocols/service/keyspace/store.ts";
import type { Interval, KeyEvent, KeyspaceChange } from "../../protocols/service/keyspace/vocabulary.ts";
import { count, type EtcdCounts } from "../../runtime/metrics.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import { atLeastZero, wireKeyValue } from "./calls.ts";
import { EtcdError } from "./errors.ts";
import { bidirectional, type Duplex, type Method } from "./grpc-door.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";
import type { HeaderOf } from "./kv-service.ts";
import * as of from "./messages.ts";

type WatchRequest = of.ValueOf<typeof of.watchRequest>;
type WatchResponse = of.ValueOf<typeof of.watchResponse>;
type CreateRequest = of.ValueOf<typeof of.watchCreateRequest>;
type Stream = Duplex<WatchRequest, Partial<WatchResponse>>;

const MAX_WATCHES = 10_000;
const MAX_WATCHES_OF_STREAM = 1_000;
/**
 * The maximum backlog for a slow reader, in changes and in bytes. A watch that exceeds it reads the history from the
 * reader's position instead.
 */
const MAX_BACKLOG = 1_000;
const MAX_BACKLOG_BYTES = 1_048_576;
/** The maximum size of one read from the history. Each stream makes one read at a time. */
const ANSWER_BYTES = 1_048_576;
/** The maximum size of a message to a watch with `fragment`, unless a single event is larger. */
const FRAGMENT_BYTES = 1_048_576;
/** The maximum overhead of an event, in addition to its key and values. */
const EVENT_BYTES = 100;
/**
 * A watch with `progress_notify` reports its revision after this much time, or this many changes to other keys, without
 * a change to its own keys. A client resumes from the last reported revision, so this keeps that revision within the
 * retained history.
 */
const PROGRESS_MS = 60_000;
const PROGRESS_REVISIONS = 1_000;
const NO_WATCH = -1;
/** The first possible key, which an empty key in a request means. */
const FIRST_KEY = "\0";
const NO_PUT = 0;
const NO_DELETE = 1;

/** The watches of one stream. */
export class Watches {
  readonly #keyspace: KeyspaceClient;
  readonly #headerOf: HeaderOf;
  readonly #counts: Pick<EtcdCounts, "watches" | "refused">;
  readonly #watches = new Set<Watch>();
  readonly #forget: () => void;
  readonly #progressMs: number;
  #isNotifying = false;

  constructor(
    keyspace: KeyspaceClient,
    headerOf: HeaderOf,
    counts: Pick<EtcdCounts, "watches" | "refused">,
    progressMs = PROGRESS_MS,
  ) {
    this.#progressMs = progressMs;
    this.#keyspace = keyspace;
    this.#headerOf = headerOf;
    this.#counts = counts;
    this.#forget = keyspace.listen((change) => {
      const bytes = change === null ? 0 : bytesOf(change);
      for (const watch of this.#watches) watch.hear(change, bytes);
    });
  }

  readonly service: Record<string, Method> = {
    Watch: bidirectional(of.watchRequest, of.watchResponse, (stream) => this.#serve(stream)),
  };

  close(): void {
    this.#forget();
  }

  async #serve(stream: Stream): Promise<void> {
    const own = new Map<number, Watch>();
    const end = (watch: Watch): void => {
      watch.end();
      own.delete(watch.id);
      this.#watches.delete(watch);
      this.#counts.watches = this.#watches.size;
      around.rested(); // A progress request may have been waiting only for this watch.
    };
    const sendInTurn = turns();
    const around: Around = {
      keyspace: this.#keyspace,
      headerOf: this.#headerOf,
      inTurn: turns(),
      nextId: 0,
      progressOwed: null,
      // Send the fragments of a response without interruption. Otherwise, clients could not reassemble them.
      send: (...responses) =>
        sendInTurn(async () => {
          for (const response of responses) await stream.send(response);
        }),
      fail: (error) => stream.fail(error),
      rested: () => {
        this.#sendProgress(around, own).catch(around.fail);
      },
    };
    try {
      for await (const { create_request, cancel_request, progress_request } of stream.requests) {
        if (create_request !== null) await this.#create(create_request as CreateRequest, around, own, end);
        else if (cancel_request !== null) {
          const watch = own.get(cancel_request.watch_id ?? 0);
          if (watch === undefined) continue;
          end(watch);
          await around.send({ header: this.#headerOf(watch.upTo), watch_id: watch.id, canceled: true });
        } else if (progress_request !== null) {
          // All changes up to this revision have reached the watches. Some revisions changed no key.
          around.progressOwed = (await this.#keyspace.ask({ type: "size" })).revision;
          await this.#sendProgress(around, own);
        }
      }
      await aborted(stream.signal); // A client that has finished sending requests may still read.
    } finally {
      around.progressOwed = null;
      for (const watch of [...own.values()]) end(watch);
    }
  }

  async #create(
    request: CreateRequest,
    around: Around,
    own: Map<number, Watch>,
    end: (watch: Watch) => void,
  ): Promise<void> {
    const refusal = this.#refusalOf(request, own);
    if (refusal !== null) {
      const [label, cancel_reason] = refusal;
      count(this.#counts.refused, label);
      const { revision } = await this.#keyspace.ask({ type: "size" });
      return around.send({
        header: this.#headerOf(revision),
        watch_id: NO_WATCH,
        created: true,
        canceled: true,
        cancel_reason,
      });
    }
    const id = request.watch_id === 0 ? freeId(around, own) : request.watch_id;
    const watch = new Watch(id, request, around);
    own.set(id, watch);
    this.#watches.add(watch);
    this.#counts.watches = this.#watches.size;
    await watch.begin();
    void watch.run().finally(() => end(watch));
    if (request.progress_notify) this.#notifyProgress().catch(() => {});
  }

  /** Returns the label for metrics and etcd's error text. */
  #refusalOf(
    { key, range_end, watch_id }: CreateRequest,
    own: ReadonlyMap<number, Watch>,
  ): readonly [label: string, reason: string] | null {
    const from = key === "" ? FIRST_KEY : key;
    if (isOwn(from)) return ["permission-denied", "etcdserver: permission denied"];
    if (range_end !== "" && range_end !== ALL_FROM && range_end <= from)
      return ["empty-watch-range", "mvcc: watcher range is empty"];
    if (watch_id !== 0 && own.has(watch_id))
      return ["duplicate-watch", "mvcc: duplicate watch ID provided on the WatchStream"];
    const isFull = this.#watches.size >= MAX_WATCHES || own.size >= MAX_WATCHES_OF_STREAM;
    return isFull ? ["too-many-watches", "etcdserver: too many requests"] : null;
  }

  /** Sends a requested progress response once all watches on the stream have sent their changes. */
  async #sendProgress(around: Around, own: ReadonlyMap<number, Watch>): Promise<void> {
    const { progressOwed } = around;
    const watches = [...own.values()];
    if (progressOwed === null || watches.some((watch) => !watch.isUpToDate)) return;
    around.progressOwed = null;
    const reported = watches.length === 0 ? 0 : Math.min(...watches.map((watch) => watch.upTo));
    const revision = Math.max(progressOwed, reported); // Not before changes that have already been sent.
    await around.send({ header: this.#headerOf(revision), watch_id: NO_WATCH });
  }

  /** Reports progress at intervals as long as there are watches with `progress_notify`. */
  async #notifyProgress(): Promise<void> {
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    const asking = (): Watch[] => [...this.#watches].filter((watch) => watch.notifiesProgress);
    while (asking().length > 0) {
      await sleep(this.#keyspace.timers, this.#progressMs, { ref: false });
      // All changes up to this revision have reached the watches. Some revisions changed no key.
      const size = await this.#keyspace.ask({ type: "size" }).catch(() => null); // There may be no majority.
      for (const watch of asking()) watch.notifyProgress(size?.revision ?? 0);
    }
    this.#isNotifying = false;
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });

/** Returns an unused id. Ids are not reused, since messages from an earlier watch may still be in flight. */
function freeId(around: Around, own: ReadonlyMap<number, unknown>): number {
  while (own.has(around.nextId)) around.nextId += 1;
  around.nextId += 1;
  return around.nextId - 1;
}

/** Returns a function that runs tasks one after another. */
function turns(): Around["inTurn"] {
  let last = Promise.resolve();
  return (work) => {
    last = last.then(work, work);
    return last;
  };
}

const bytesOf = ({ events }: KeyspaceChange): number =>
  events.reduce((sum, { kv, prev }) => sum + kv.key.length + kv.value.length + (prev?.value.length ?? 0), 0);

/** The context shared by all watches of a stream. */
interface Around {
  readonly keyspace: KeyspaceClient;
  readonly headerOf: HeaderOf;
  /** The next watch id to assign if the client does not choose one. */
  nextId: number;
  /** The revision to report once all watches have sent their changes. Null if there is no progress request. */
  progressOwed: number | null;
  inTurn(work: () => Promise<void>): Promise<void>;
  /** Sends responses one after another. */
  send(...responses: Partial<WatchResponse>[]): Promise<void>;
  fail(error: unknown): void;
  /** Called when a watch has sent all its changes, or has ended. */
  rested(): void;
}

class Watch {
  readonly #request: CreateRequest;
  readonly #around: Around;
  /** The first revision that has not been reported yet. */
  #next: number;
  /** The revision of the last change that the watch has processed, whether or not it matched. */
  upTo = 0;
  #waiting: KeyspaceChange[] = [];
  #waitingBytes = 0;
  /** Whether the watch must read the history because its backlog is incomplete. */
  #isBehind = true;
  #isEnded = false;
  /** Whether the watch has reported all changes and is waiting for the next one. */
  #isResting = false;
  #wake: () => void = () => {};
  /** The revision of the last message to the client. */
  #reported = 0;
  /** Whether no event has been sent since the last progress report was due. */
  #isQuiet = true;

  constructor(
    readonly id: number,
    request: CreateRequest,
    around: Around,
  ) {
    this.#request = request;
    this.#around = around;
    this.#next = atLeastZero(request.start_revision);
  }

  get isUpToDate(): boolean {
    return this.#isResting && !this.#isBehind && this.#waiting.length === 0;
  }

  /**
   * Handles a change.
   * @param bytes the size of the change
   */
  hear(change: KeyspaceChange | null, bytes: number): void {
    const isFull = this.#waiting.length >= MAX_BACKLOG || this.#waitingBytes + bytes > MAX_BACKLOG_BYTES;
    if (change === null || isFull) this.#fallBehind();
    else if (change.events.length > 0) {
      this.#waiting.push(change);
      this.#waitingBytes += bytes;
    }
    this.#wake();
  }

  #fallBehind(): void {
    this.#isBehind = true;
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  /** Confirms to the client that the watch has been created. */
  async begin(): Promise<void> {
    const { keyspace, headerOf } = this.#around;
    this.#isBehind = false; // From now on, changes go to the backlog.
    const { revision } = await keyspace.ask({ type: "size" });
    this.upTo = revision;
    this.#reported = revision;
    if (this.#next === 0) this.#next = revision + 1;
    else if (this.#next <= revision) this.#isBehind = true;
    await this.#around.send({ header: headerOf(revision), watch_id: this.id, created: true });
  }

  get notifiesProgress(): boolean {
    return this.#request.progress_notify;
  }

  /**
   * Reports the watch's revision if nothing has been sent since the last call. Called at intervals.
   * @param revision a revision up to which all changes have been heard
   */
  notifyProgress(revision: number): void {
    if (this.isUpToDate) this.upTo = Math.max(this.upTo, revision);
    if (this.#isQuiet && this.isUpToDate) this.#report().catch(this.#around.fail);
    this.#isQuiet = true;
  }

  async #report(): Promise<void> {
    const { send, headerOf } = this.#around;
    this.#reported = this.upTo;
    await send({ header: headerOf(this.upTo), watch_id: this.id });
  }

  async run(): Promise<void> {
    try {
      while (!this.#isEnded) {
        if (this.#isBehind) await this.#around.inTurn(() => this.#ask());
        else if (this.#waiting.length === 0) await this.#rest();
        else await this.#tell(this.#waiting.shift() as KeyspaceChange);
      }
    } catch (error) {
      if (error instanceof EtcdError && error.is("compacted")) await this.#cancel(error);
      else if (!this.#isEnded) this.#around.fail(error); // The error may be temporary. The client reconnects.
    }
  }

  async #rest(): Promise<void> {
    this.#isResting = true;
    const woken = new Promise<void>((resolve) => (this.#wake = resolve));
    this.#around.rested();
    await woken;
    this.#isResting = false;
  }

  async #ask(): Promise<void> {
    if (this.#isEnded) return;
    this.#fallBehind();
    this.#isBehind = false;
    const asked = { ...this.#interval, from: this.#next, maxBytes: ANSWER_BYTES };
    const found = await this.#around.keyspace.ask({ type: "events", ...asked });
    if (found.next <= found.revision) this.#isBehind = true;
    await this.#send(found.events, found.next - 1);
    this.#next = Math.max(this.#next, found.next);
  }

  async #tell(change: KeyspaceChange): Promise<void> {
    const { revision, events } = change;
    this.#waitingBytes -= bytesOf(change);
    if (revision < this.#next) return;
    this.#next = revision + 1;
    await this.#send(events, revision);
  }

  async #send(events: readonly KeyEvent[], revision: number): Promise<void> {
    this.upTo = Math.max(this.upTo, revision);
    const wanted = events.filter((event) => this.#wants(event));
    if (this.#isEnded) return;
    if (wanted.length === 0) {
      if (this.notifiesProgress && this.upTo - this.#reported >= PROGRESS_REVISIONS) await this.#report();
      return;
    }
    this.#isQuiet = false;
    this.#reported = this.upTo;
    const header = this.#around.headerOf(this.upTo);
    const parts = this.#request.fragment ? fragmentsOf(wanted) : [wanted];
    const responses = parts.map((part, at) => ({
      header,
      watch_id: this.id,
      events: part.map((event) => this.#shown(event)),
      fragment: at < parts.length - 1,
    }));
    await this.#around.send(...responses);
  }

  #shown({ type, kv, prev }: KeyEvent) {
    return {
      type: type === "put" ? 0 : 1,
      kv: wireKeyValue(kv),
      prev_kv: this.#request.prev_kv && prev !== null ? wireKeyValue(prev) : null,
    };
  }

  #wants({ type, kv }: KeyEvent): boolean {
    return covers(this.#interval, kv.key) && !this.#request.filters.includes(type === "put" ? NO_PUT : NO_DELETE);
  }

  get #interval(): Interval {
    const { key, range_end: end } = this.#request;
    return { key: key === "" ? FIRST_KEY : key, end };
  }

  async #cancel({ compacted }: EtcdError): Promise<void> {
    if (this.#isEnded) return;
    const { send, headerOf } = this.#around;
    await send({
      header: headerOf(0), // As etcd does.
      watch_id: this.id,
      canceled: true,
      compact_revision: compacted,
    });
  }
}

/** Splits events into parts that do not exceed the client's limit. */
function fragmentsOf(events: readonly KeyEvent[]): KeyEvent[][] {
  const fragments: KeyEvent[][] = [];
  let room = 0;
  for (const event of events) {
    const { kv, prev } = event;
    const bytes = 2 * (EVENT_BYTES + kv.key.length) + kv.value.length + (prev?.value.length ?? 0);
    if (bytes > room) {
      fragments.push([]);
      room = FRAGMENT_BYTES;
    }
    fragments.at(-1)?.push(event);
    room -= bytes;
  }
  return fragments;
}
