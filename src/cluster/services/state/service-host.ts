/**
 * The replicated service of a member with a journal. It hosts the protocol stack, and all requests and events pass
 * through it.
 */
import type { NodeId, RequestId, StateOf, View, Vocabulary } from "../../../core/protocol.ts";
import type { Command } from "../../../protocols/consensus/family/replicated-log.ts";
import type { AnyProtocol } from "../../../protocols/entry.ts";
import type { CoordinationService } from "../../../protocols/service/coordination-service/coordination-service.ts";
import { changeIn } from "../../../protocols/service/coordination-service/keys.ts";
import {
  type Operation,
  type Query,
  type Refusal,
  refuse,
  type SessionId,
} from "../../../protocols/service/coordination-service/operations.ts";
import type { Replica } from "../../../protocols/service/coordination-service/replica.ts";
import type { MemberSession } from "../../../protocols/service/coordination-service/session-vocabulary.ts";
import { placeOf } from "../../../protocols/service/keyspace/layout.ts";
import type { ByteText, KeyspaceChange } from "../../../protocols/service/keyspace/vocabulary.ts";
import { Host } from "../../../runtime/host.ts";
import type { Journal } from "../../../runtime/journal/journal.ts";
import { protocolSlot } from "../../../runtime/journal/protocol-slot.ts";
import { type Counts, measure } from "../../../runtime/metrics.ts";
import type { Platform } from "../../../runtime/platform/platform.ts";
import { sleep } from "../../../runtime/platform/sleep.ts";
import type { SendResult } from "../../../runtime/transport/tcp.ts";
import type { CoordinationError } from "../coordination-error.ts";
import { type Content, type ServiceEnvelope, serviceContent } from "../envelope.ts";
import type { MemberTrace } from "../member-trace.ts";
import { UNNAMED } from "../unrecorded.ts";
import { type Call, type Calls, type IsWanted, withinTime } from "./calls.ts";
import { refusalOf, unknownOutcome } from "./refusals.ts";
import type { Done, Found, Listener, Service, Told, Topic } from "./service.ts";
import { ServiceTimes } from "./service-times.ts";

export interface ServiceHostOptions {
  readonly platform: Platform;
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
  readonly maxWaiters: number;
  readonly counts: Pick<Counts, "locks" | "leaderships" | "sessionsLost" | "log">;
  readonly protocol: AnyProtocol;
  readonly journal: Journal;
  readonly trace: MemberTrace;
  send(to: NodeId, envelope: ServiceEnvelope): SendResult;
  /** Returns why calls might not be answered, as a clause. Empty if unknown. */
  why(): string;
  onFatal(error: Error): void;
}

/** The results of a client's commands. */
export type ClientAnswered = Extract<Replica["event"], { type: "clientAnswered" }>;

const SLOT = "service";
/**
 * How far request numbers advance per millisecond. A process makes fewer requests per millisecond of its lifetime, so
 * no later process uses the same numbers.
 */
const NUMBERS_PER_MS = 1_000;
/** The delay before a command whose session has ended is submitted in the next session. */
const AGAIN_MS = 20;

/** Runs this member's replicated service. */
export class ServiceHost implements Service {
  readonly platform: Platform;
  readonly self: NodeId;
  readonly counts: ServiceHostOptions["counts"];
  readonly maxWaiters: number;
  session: SessionId | null = null;
  until: number | null = null;
  /** The leader of the log, as far as this member knows. */
  leader: NodeId | null = null;
  term = 0;
  closed: CoordinationError | null = null;
  /** Called with the results of a client's commands. The server for clients sets it. */
  onClientAnswered: (answered: ClientAnswered) => void = () => {};
  /** Returns whether a client follows the given map. */
  isFollowedByClients: (map: string) => boolean = () => false;
  readonly #options: ServiceHostOptions;
  readonly #listeners = new Set<Listener>();
  /**
   * The listeners, as an array that does not change during iteration. Null after a listener has been added or removed.
   */
  #listening: readonly Listener[] | null = null;
  readonly #peers: Set<NodeId>;
  readonly #host: Host<Vocabulary>;
  readonly #calls: Calls = {
    begin: () => {
      this.use();
      this.#waiting += 1;
    },
    end: () => {
      this.#waiting -= 1;
    },
    why: () => this.why,
    closed: () => this.closed,
  };
  #current: Promise<number> | null = null;
  /** The revision before this member's first write, if that write was made before the current revision was known. */
  #beforeOwn = Number.POSITIVE_INFINITY;
  /** Whether this replica has been up to date. */
  #isCurrent = false;
  #isOpen = false;
  /** The requests made in this turn of the event loop. */
  #gathered: Asked[] = [];
  #waiting = 0;
  /** The number of map watches in this process, not counting the clients' watches. */
  watches = 0;
  /** The number of listeners for changes to any key, for clients of etcd. */
  keyListeners = 0;
  readonly #times: ServiceTimes;
  /** The protocol's state. The host mutates this object. */
  #state: StateOf<CoordinationService> | null = null;
  readonly #firstNumber: number;
  #number: number;
  /** This member's sessions that the log has not ended, as far as this replica knows. */
  readonly #own = new Set<SessionId>();
  /** The sessions of this incarnation. Grants held by earlier incarnations are no longer in use. */
  readonly #ofThisRun = new Set<SessionId>();

  constructor(options: ServiceHostOptions) {
    this.#options = options;
    this.platform = options.platform;
    this.self = options.self;
    this.counts = options.counts;
    this.maxWaiters = options.maxWaiters;
    this.#firstNumber = Math.floor(options.platform.clock.stamp()) * NUMBERS_PER_MS;
    this.#number = this.#firstNumber;
    this.#peers = new Set(options.peers);
    this.#times = new ServiceTimes(options.platform.clock, options.counts.log);
    this.#host = this.#hostOf(options.protocol);
  }

  get view(): View {
    return this.#host.view;
  }

  /**
   * Computes a value from the service's state. The result must not be part of the state. Returns null if the protocol
   * has not started yet.
   */
  look<T>(find: (state: StateOf<CoordinationService>) => T): T | null {
    return this.#state && find(this.#state);
  }

  get revision(): number | null {
    return this.#isCurrent ? this.look(revisionIn) : null;
  }

  /** Why calls might not be answered, as a clause. Empty if unknown. */
  get why(): string {
    return this.#options.why();
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Whether all outputs have been sent. */
  get isSettled(): boolean {
    return this.#host.isSettled;
  }

  /** Called when the member has joined. */
  start(): void {
    this.#isOpen = true;
    this.#host.start();
  }

  use(): void {
    if (this.closed !== null) throw this.closed;
  }

  /** Adds a member from a later list. */
  meet(node: NodeId): void {
    this.#peers.add(node);
    this.#host.meet(node);
  }

  /** Transfers leadership of the log to the given member. */
  transfer(to: NodeId): void {
    this.use();
    this.#host.carryOut({ type: "log", body: { type: "transfer", to } } as never);
  }

  receive(from: NodeId, content: Content): void {
    // A message that cannot be decoded comes from a different release.
    if (!("body" in content) || !this.#peers.has(from)) return;
    this.#host.receive(from, content.body as never, UNNAMED);
  }

  /** Proposes a client's command to the log. It may be lost, so the client repeats it. */
  propose(command: Command): void {
    this.use();
    this.#times.proposed(command.client);
    this.#host.carryOut({ type: "log", body: { type: "propose", command } } as never);
  }

  isOwn(session: SessionId): boolean {
    return this.#own.has(session);
  }

  isOfThisRun(session: SessionId): boolean {
    return this.#ofThisRun.has(session);
  }

  number(): number {
    this.#number += 1;
    return this.#number;
  }

  current(): Promise<number> {
    this.#current ??= this.query({ type: "sessions" }).then(
      ({ revision }) => {
        this.#isCurrent = true;
        return Math.min(revision, this.#beforeOwn);
      },
      (error: unknown) => {
        this.#current = null;
        throw error;
      },
    );
    return this.#current;
  }

  submit<O extends Operation>(operation: O, isWanted: IsWanted): Promise<Done<O>> {
    const asked = this.platform.clock.now();
    return this.#request(
      (request) => ({ type: "submit", request, operation }),
      (reply) => this.#doneIn(reply, operation, asked, isWanted),
    );
  }

  /** Returns the result from a reply, or submits the operation again in the next session. */
  #doneIn<O extends Operation>(
    reply: Reply,
    operation: O,
    asked: number,
    isWanted: IsWanted,
  ): Done<O> | Promise<Done<O>> {
    if (reply.type === "done") measure(this.counts.log.committing, this.platform.clock.now() - asked);
    const { revision, session, result } = reply.type === "done" ? reply : notDone(refusalIn(reply));
    if (!this.#isCurrent && revision > 0) this.#beforeOwn = Math.min(this.#beforeOwn, revision - 1);
    if (result.type === "unknown") throw unknownOutcome(operation);
    if (result.type !== "refused") return { revision, session, result } as Done<O>;
    if (result.code !== "session-expired" || OF_A_SESSION.has(operation.type)) throw refusalOf(result);
    return this.#submitAgain(operation, isWanted, result);
  }

  /** Submits an operation again in the next session, because it was not applied. */
  async #submitAgain<O extends Operation>(operation: O, isWanted: IsWanted, refusal: Refusal): Promise<Done<O>> {
    await sleep(this.platform.timers, AGAIN_MS, { ref: false });
    if (!isWanted()) throw refusalOf(refusal);
    return this.submit(operation, isWanted);
  }

  query<Q extends Query>(query: Q): Promise<Found<Q>> {
    const asked = this.platform.clock.now();
    return this.#request(
      (request) => ({ type: "query", request, query }),
      (reply) => this.#foundIn<Q>(reply, asked),
    );
  }

  #foundIn<Q extends Query>(reply: Reply, asked: number): Found<Q> {
    if (reply.type === "read") measure(this.counts.log.reading, this.platform.clock.now() - asked);
    const { revision, answer } = reply.type === "read" ? reply : { revision: 0, answer: refusalIn(reply) };
    if (answer.type === "refused") throw refusalOf(answer);
    return { revision, answer } as Found<Q>;
  }

  call<T>(call: Call, answer: (isWanted: IsWanted) => Promise<T>): Promise<T> {
    return withinTime(this.platform, call, answer, this.#calls);
  }

  follow(topic: Topic): () => void {
    return topic === "map" ? this.#counted("watches") : () => {};
  }

  /**
   * Starts reporting all changes to keys. Otherwise, only those are reported that concern leases or followed maps.
   * @returns a function that stops this
   */
  followKeys(): () => void {
    return this.#counted("keyListeners");
  }

  #counted(what: "watches" | "keyListeners"): () => void {
    this[what] += 1;
    let isOpen = true;
    return () => {
      if (isOpen) this[what] -= 1;
      isOpen = false;
    };
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    this.#listening = null;
    return () => {
      this.#listeners.delete(listener);
      this.#listening = null;
    };
  }

  /** Ends all grants with the given reason. Later calls are rejected. */
  close(reason: CoordinationError): void {
    if (this.closed !== null) return;
    this.closed = reason;
    this.#tell({ type: "closed", reason }, null);
    this.#listeners.clear();
    this.#listening = null;
  }

  /**
   * Ends the session. If this member leads the log, transfers leadership to one of the given members. Both steps share
   * a timeout.
   */
  async depart(peers: readonly NodeId[]): Promise<void> {
    const host = this.#host;
    this.#askGathered(); // Earlier requests go first.
    const { clock, timers } = this.platform;
    const until = clock.now() + LAST_WORDS_MS;
    const settle = async (isDone: () => boolean): Promise<void> => {
      while (!isDone() && this.#isOpen && clock.now() < until) await sleep(timers, LOOK_EVERY_MS);
    };
    host.command({ type: "session", body: { type: "depart" } });
    if (peers.length > 0) await settle(() => this.session === null);
    const [to] = peers;
    if (to === undefined || this.leader !== this.self) return;
    host.command({ type: "log", body: { type: "transfer", to } });
    await settle(() => this.leader !== this.self);
  }

  stop(): void {
    this.#isOpen = false;
    this.#host.stop();
  }

  #hostOf(protocol: AnyProtocol): Host<Vocabulary> {
    const { platform, self, peers, journal, send, trace, onFatal } = this.#options;
    const type = serviceContent(protocol);
    const init: AnyProtocol["init"] = (node, others) => {
      const state = protocol.init(node, others);
      this.#state = state as StateOf<CoordinationService>;
      return state;
    };
    return new Host<Vocabulary>({
      platform,
      protocol: { ...protocol, init },
      self,
      peers,
      send: (to, body) => send(to, { type: "service", content: { type, body } }),
      trace: trace.of(["service"], true),
      slot: protocolSlot<Vocabulary>(journal, SLOT, protocol),
      beforeStep: () => this.#times.stepBegins(),
      afterStep: () => this.#times.stepEnds(this.look(snapshotIndex) ?? 0, this.look(charsWritten) ?? 0),
      onEvent: (event, until) => this.#hear((event as Wrapped).body, until),
      isHeard: (event) => this.#isHeard((event as Wrapped).body),
      onFatal,
    });
  }

  /**
   * Sends a request to the session. All writes made in one turn of the event loop go to the log together. Reads made in
   * one turn are batched too, since a single round serves all of them.
   */
  #request<T>(numbered: Asked["numbered"], read: (reply: Reply) => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.use();
      const count = this.#gathered.push(new Asked(numbered, read, resolve as (value: unknown) => void, reject));
      if (count === 1) this.platform.timers.soon(() => this.#askGathered());
    });
  }

  #askGathered(): void {
    const gathered = this.#gathered;
    this.#gathered = [];
    const isMany = gathered.length > 1 && this.#isOpen;
    const host = this.#host;
    if (isMany) host.carryOut({ type: "session", body: { type: "cork" } } as never);
    for (const asked of gathered) asked.askOf(host);
    if (isMany) host.carryOut({ type: "session", body: { type: "uncork" } } as never);
  }

  /** Whether the event has a listener. Most changes to keys have no watch in this process. */
  #isHeard(event: Told | ClientAnswered): boolean {
    if (event.type !== "keysChanged") return !BETWEEN_PARTS.has(event.type);
    const concernsLeases = event.renewed !== null || event.ended !== null;
    return concernsLeases || this.keyListeners > 0 || event.events.some(({ kv }) => this.#isFollowed(kv.key));
  }

  #isFollowed(key: ByteText): boolean {
    const place = placeOf(key);
    return place !== null && (this.watches > 0 || this.isFollowedByClients(place.map));
  }

  /** Reports the changes to followed maps. */
  #tellMaps({ events }: KeyspaceChange): void {
    for (const event of events) {
      const change = this.#isFollowed(event.kv.key) ? changeIn(event) : null;
      if (change !== null) this.#tell({ type: "changed", ...change }, null);
    }
  }

  #hear(event: Told | ClientAnswered, until: number | null): void {
    if (event.type === "clientAnswered") {
      this.#times.answered(event.client);
      return this.onClientAnswered(event);
    }
    if (event.type === "began" || (event.type === "opened" && event.member === this.self)) {
      this.session = event.session;
      this.#own.add(event.session);
    }
    if (event.type === "confirmed") this.until = until;
    if (event.type === "led") {
      this.leader = event.leader;
      this.term = event.term;
      this.#times.led(event);
      if (event.leader !== null && !this.#isCurrent) this.current().catch(() => {}); // A failed request is repeated.
    }
    if (event.type === "began" || this.#isWaitOfThisRun(event)) this.#ofThisRun.add(event.session);
    if (event.type !== "lost") this.#tell(event, until);
    if (event.type === "keysChanged") this.#tellMaps(event);
    // The log may end the session before this member's clock does. The session's grants must not be mistaken for grants
    // held by the next session.
    if (event.type === "ended" || event.type === "lost") this.#lose(event.session);
  }

  #isWaitOfThisRun(event: Told): event is Extract<Told, { type: "granted" | "item" }> {
    const isGiven = event.type === "granted" || event.type === "item";
    return isGiven && event.wait > this.#firstNumber && this.#own.has(event.session);
  }

  #lose(session: SessionId): void {
    if (this.#ofThisRun.has(session)) this.#tell({ type: "lost", session }, null);
    this.#ofThisRun.delete(session);
    this.#own.delete(session);
    if (this.session !== session) return;
    this.session = null;
    this.until = null;
  }

  #tell(event: Told, until: number | null): void {
    this.#listening ??= [...this.#listeners];
    for (const listener of this.#listening) listener(event, until);
  }
}

const revisionIn = ({ replica }: StateOf<CoordinationService>): number => replica.data.keyspace.revision;
const snapshotIndex = ({ log }: StateOf<CoordinationService>): number => log.snapshot.index;
/** Returns the number of characters in the snapshot that is being written, or 0 if there is none. */
const charsWritten = ({ replica }: StateOf<CoordinationService>): number => replica.saving?.writing.text.length ?? 0;

/** Operations that belong to a session. Waiters repeat them in the next session if they are still wanted. */
const OF_A_SESSION: ReadonlySet<Operation["type"]> = new Set([
  "acquire",
  "withdraw",
  "arrive",
  "leave",
  "take",
  "stopTaking",
  "enterGroup",
  "leaveGroup",
  "expelFromGroup",
  "say",
]);

/** The types of events between the session, the log and the replica. */
const BETWEEN_PARTS: ReadonlySet<string> = new Set([
  "proposed",
  "reading",
  "query",
  "looking",
  "decided",
  "installed",
  "readable",
  "applied",
  "answered",
  "queried",
  "seen",
  "saved",
  "listed",
  "wanted",
]);

/** How long a leaving member waits for its session to end and for another member to lead. */
const LAST_WORDS_MS = 500;
const LOOK_EVERY_MS = 2;

type Wrapped = { readonly body: never };
type Reply = MemberSession["reply"];

/** A request to the session, with the handler for its reply. */
class Asked {
  readonly #read: (reply: Reply) => unknown;
  readonly #answer: (value: unknown) => void;
  constructor(
    readonly numbered: (request: RequestId) => MemberSession["command"],
    read: (reply: Reply) => unknown,
    answer: (value: unknown) => void,
    readonly reject: (error: Error) => void,
  ) {
    this.#read = read;
    this.#answer = answer;
  }

  resolve({ body }: Wrapped): void {
    try {
      this.#answer(this.#read(body));
    } catch (error) {
      this.reject(error as Error);
    }
  }

  askOf(host: Host<Vocabulary>): void {
    try {
      host.ask((request) => ({ type: "session", body: this.numbered(request) }) as never, this);
    } catch (error) {
      this.reject(error as Error);
    }
  }
}

const notDone = (result: Refusal) => ({ revision: 0, session: 0, result });
const refusalIn = (reply: Reply): Refusal =>
  reply.type === "refused" ? reply : refuse("bad-operation", `unexpected answer: ${reply.type}`);
