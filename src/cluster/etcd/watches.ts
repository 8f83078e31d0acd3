/**
 * etcd's service Watch: each watch reports every change from its revision on, in order and once, no matter how slowly its
 * client reads.
 */
import { ALL_FROM, covers } from "../../protocols/service/keyspace/versions.ts";
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
 * The backlog for a slow reader: changes, and their bytes. Beyond it, the watch reads the history from the reader's
 * position.
 */
const MAX_BACKLOG = 1_000;
const MAX_BACKLOG_BYTES = 1_048_576;
/** The limit of one read of the history; each stream makes one read at a time. */
const ANSWER_BYTES = 1_048_576;
/** The limit of one message to a watch with `fragment`, unless one event is larger. */
const FRAGMENT_BYTES = 1_048_576;
/** The largest overhead of an event, in addition to its key and values. */
const EVENT_BYTES = 100;
/**
 * A watch with `progress_notify` reports its revision when none of its keys has changed for this time, or during this many
 * changes of other keys. A client resumes from the last reported revision, which thereby stays within the retained history.
 */
const PROGRESS_MS = 60_000;
const PROGRESS_REVISIONS = 1_000;
const NO_WATCH = -1;
/** The key that an empty key denotes. */
const FIRST_KEY = "\0";
const NO_PUT = 0;
const NO_DELETE = 1;

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
      around.rested(); // A progress request may have waited only for this watch.
    };
    const sendInTurn = turns();
    const around: Around = {
      keyspace: this.#keyspace,
      headerOf: this.#headerOf,
      inTurn: turns(),
      nextId: 0,
      isProgressOwed: false,
      // Sends the fragments of a response without interruption: clients could not join them otherwise.
      send: (...responses) =>
        sendInTurn(async () => {
          for (const response of responses) await stream.send(response);
        }),
      fail: (error) => stream.fail(error),
      rested: () => {
        if (around.isProgressOwed) this.#sendProgress(around, own).catch(around.fail);
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
        } else if (progress_request !== null) await this.#sendProgress(around, own);
      }
      await aborted(stream.signal); // A client that has sent all its requests still reads.
    } finally {
      around.isProgressOwed = false;
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

  /** The label for metrics, and etcd's text. */
  #refusalOf(
    { key, range_end, watch_id }: CreateRequest,
    own: ReadonlyMap<number, Watch>,
  ): readonly [label: string, reason: string] | null {
    const from = key === "" ? FIRST_KEY : key;
    if (range_end !== "" && range_end !== ALL_FROM && range_end <= from)
      return ["empty-watch-range", "mvcc: watcher range is empty"];
    if (watch_id !== 0 && own.has(watch_id))
      return ["duplicate-watch", "mvcc: duplicate watch ID provided on the WatchStream"];
    const isFull = this.#watches.size >= MAX_WATCHES || own.size >= MAX_WATCHES_OF_STREAM;
    return isFull ? ["too-many-watches", "etcdserver: too many requests"] : null;
  }

  /** Answers once all watches of the stream have sent their changes. */
  async #sendProgress(around: Around, own: ReadonlyMap<number, Watch>): Promise<void> {
    const watches = [...own.values()];
    around.isProgressOwed = watches.some((watch) => !watch.isUpToDate);
    if (around.isProgressOwed) return;
    const revision =
      watches.length === 0
        ? (await this.#keyspace.ask({ type: "size" })).revision
        : Math.min(...watches.map((watch) => watch.upTo));
    await around.send({ header: this.#headerOf(revision), watch_id: NO_WATCH });
  }

  /** Runs while there are watches with `progress_notify`. */
  async #notifyProgress(): Promise<void> {
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    const asking = (): Watch[] => [...this.#watches].filter((watch) => watch.notifiesProgress);
    while (asking().length > 0) {
      await sleep(this.#keyspace.timers, this.#progressMs, { ref: false });
      for (const watch of asking()) watch.notifyProgress();
    }
    this.#isNotifying = false;
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });

/** Ids are not reused: messages of an earlier watch may still be in flight. */
function freeId(around: Around, own: ReadonlyMap<number, unknown>): number {
  while (own.has(around.nextId)) around.nextId += 1;
  around.nextId += 1;
  return around.nextId - 1;
}

/** Runs tasks one after another. */
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
  /** The id of the next watch whose client does not choose one. */
  nextId: number;
  /** Whether a progress request waits for watches that lag behind. */
  isProgressOwed: boolean;
  inTurn(work: () => Promise<void>): Promise<void>;
  /** Sends the responses one after another. */
  send(...responses: Partial<WatchResponse>[]): Promise<void>;
  fail(error: unknown): void;
  /** A watch has sent all its changes, or has ended. */
  rested(): void;
}

class Watch {
  readonly #request: CreateRequest;
  readonly #around: Around;
  /** The first revision that has not been reported. */
  #next: number;
  /** The revision of the last change that it has seen, whether or not it concerned its client. */
  upTo = 0;
  #waiting: KeyspaceChange[] = [];
  #waitingBytes = 0;
  /** Whether it must read the history, because its backlog is incomplete. */
  #isBehind = true;
  #isEnded = false;
  /** Whether it waits for the next change, and has reported all earlier ones. */
  #isResting = false;
  #wake: () => void = () => {};
  /** The revision of the last message to its client. */
  #reported = 0;
  /** Whether no event was sent since the last progress interval. */
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

  /** @param bytes the size of the change */
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

  /** Confirms to its client that it has been created. */
  async begin(): Promise<void> {
    const { keyspace, headerOf } = this.#around;
    this.#isBehind = false; // Changes from now on go to the backlog.
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

  /** Called at intervals: reports its revision if nothing has been sent since the last call. */
  notifyProgress(): void {
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
      else if (!this.#isEnded) this.#around.fail(error); // It may be temporary: the client reconnects.
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
      header: headerOf(0), // As in etcd.
      watch_id: this.id,
      canceled: true,
      compact_revision: compacted,
    });
  }
}

/** Splits events into parts that are within a client's limit. */
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
