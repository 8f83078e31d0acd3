/** etcd's service Watch: of each watch every change from its revision on, in order and once, however slowly its client reads. */
import { covers } from "../../protocols/service/keyspace/versions.ts";
import type { Interval, KeyEvent, KeyspaceChange } from "../../protocols/service/keyspace/words.ts";
import { count, type EtcdCounts } from "../../runtime/metrics.ts";
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
/** What waits for a slow reader: changes, and their bytes. Then it is asked for anew, from where its reader is. */
const MAX_BACKLOG = 1_000;
const MAX_BACKLOG_BYTES = 1_048_576;
/** Of one answer to that; each stream has one at a time. */
const ANSWER_BYTES = 1_048_576;
const NO_WATCH = -1;
const NO_PUT = 0;
const NO_DELETE = 1;

export class Watches {
  readonly #keyspace: KeyspaceClient;
  readonly #headerOf: HeaderOf;
  readonly #counts: Pick<EtcdCounts, "watches" | "refused">;
  readonly #watches = new Set<Watch>();
  readonly #forget: () => void;

  constructor(keyspace: KeyspaceClient, headerOf: HeaderOf, counts: Pick<EtcdCounts, "watches" | "refused">) {
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
    };
    const around = { stream, keyspace: this.#keyspace, headerOf: this.#headerOf, inTurn: turns(), nextId: 0 };
    try {
      for await (const { create_request, cancel_request, progress_request } of stream.requests) {
        if (create_request !== null) await this.#create(create_request as CreateRequest, around, own, end);
        else if (cancel_request !== null) {
          const watch = own.get(cancel_request.watch_id ?? 0);
          if (watch === undefined) continue;
          end(watch);
          await stream.send({ header: this.#headerOf(watch.upTo), watch_id: watch.id, canceled: true });
        } else if (progress_request !== null) await this.#sayProgress(stream, own);
      }
    } finally {
      for (const watch of [...own.values()]) end(watch);
    }
  }

  async #create(
    request: CreateRequest,
    around: Around,
    own: Map<number, Watch>,
    end: (watch: Watch) => void,
  ): Promise<void> {
    const id = request.watch_id === 0 ? freeId(around, own) : request.watch_id;
    const isFull = this.#watches.size >= MAX_WATCHES || own.size >= MAX_WATCHES_OF_STREAM;
    if (isFull || own.has(id)) {
      count(this.#counts.refused, isFull ? "too-many-watches" : "duplicate-watch");
      const { revision } = await this.#keyspace.ask({ type: "size" });
      const cancel_reason = isFull
        ? "etcdserver: too many requests"
        : "etcdserver: duplicate watch ID provided on the WatchStream";
      return around.stream.send({
        header: this.#headerOf(revision),
        watch_id: NO_WATCH,
        created: true,
        canceled: true,
        cancel_reason,
      });
    }
    const watch = new Watch(id, request, around);
    own.set(id, watch);
    this.#watches.add(watch);
    this.#counts.watches = this.#watches.size;
    await watch.begin();
    void watch.run().finally(() => end(watch));
  }

  /** Unless some are behind: then a later request is answered. */
  async #sayProgress(stream: Stream, own: ReadonlyMap<number, Watch>): Promise<void> {
    const watches = [...own.values()];
    if (watches.length === 0 || watches.some((watch) => !watch.isUpToDate)) return;
    const upTo = Math.min(...watches.map((watch) => watch.upTo));
    await stream.send({ header: this.#headerOf(upTo), watch_id: NO_WATCH });
  }
}

/** None is given again: what was sent to the watch before may still be on its way. */
function freeId(around: Around, own: ReadonlyMap<number, unknown>): number {
  while (own.has(around.nextId)) around.nextId += 1;
  around.nextId += 1;
  return around.nextId - 1;
}

/** One after the other. */
function turns(): Around["inTurn"] {
  let last = Promise.resolve();
  return (work) => {
    last = last.then(work, work);
    return last;
  };
}

const bytesOf = ({ events }: KeyspaceChange): number =>
  events.reduce((sum, { kv, prev }) => sum + kv.key.length + kv.value.length + (prev?.value.length ?? 0), 0);

/** Of all watches of a stream. */
interface Around {
  readonly stream: Stream;
  readonly keyspace: KeyspaceClient;
  readonly headerOf: HeaderOf;
  /** Of the next watch that leaves the choice to the member. */
  nextId: number;
  inTurn(work: () => Promise<void>): Promise<void>;
}

class Watch {
  readonly #request: CreateRequest;
  readonly #around: Around;
  /** The revision from which on nothing has been told. */
  #next: number;
  /** Of the last change that it has seen, told or not. */
  upTo = 0;
  #waiting: KeyspaceChange[] = [];
  #waitingBytes = 0;
  /** Whether the replica is to be asked, as not all that has changed is in what waits. */
  #isBehind = true;
  #isEnded = false;
  /** Whether it waits for the next change: all before it has been told. */
  #isResting = false;
  #wake: () => void = () => {};

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

  /** @param bytes of the change */
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

  /** Says that it has been created. */
  async begin(): Promise<void> {
    const { stream, keyspace, headerOf } = this.#around;
    this.#isBehind = false; // What changes from now on waits.
    const { revision } = await keyspace.ask({ type: "size" });
    this.upTo = revision;
    if (this.#next === 0) this.#next = revision + 1;
    else if (this.#next <= revision) this.#isBehind = true;
    await stream.send({ header: headerOf(revision), watch_id: this.id, created: true });
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
      else if (!this.#isEnded) this.#around.stream.fail(error); // It may pass: the client begins anew, at another member, say.
    }
  }

  async #rest(): Promise<void> {
    this.#isResting = true;
    await new Promise<void>((resolve) => (this.#wake = resolve));
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
    const { stream, headerOf } = this.#around;
    this.upTo = Math.max(this.upTo, revision);
    const wanted = events.filter((event) => this.#wants(event));
    if (wanted.length === 0 || this.#isEnded) return;
    const shown = wanted.map(({ type, kv, prev }) => ({
      type: type === "put" ? 0 : 1,
      kv: wireKeyValue(kv),
      prev_kv: this.#request.prev_kv && prev !== null ? wireKeyValue(prev) : null,
    }));
    await stream.send({ header: headerOf(this.upTo), watch_id: this.id, events: shown });
  }

  #wants({ type, kv }: KeyEvent): boolean {
    return covers(this.#interval, kv.key) && !this.#request.filters.includes(type === "put" ? NO_PUT : NO_DELETE);
  }

  get #interval(): Interval {
    const { key, range_end: end } = this.#request;
    return { key: key === "" ? "\0" : key, end };
  }

  async #cancel({ compacted }: EtcdError): Promise<void> {
    if (this.#isEnded) return;
    const { stream, headerOf } = this.#around;
    await stream.send({
      header: headerOf(this.upTo),
      watch_id: this.id,
      canceled: true,
      compact_revision: compacted,
    });
  }
}
