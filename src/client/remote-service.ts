/**
 * The replicated service as a client uses it that is no member. The client runs its session itself, with the very protocol that
 * members run: it opens it, numbers its commands, proposes them again until it hears what came of them, and keeps its lease by its
 * own clock, which counts from when a keep-alive was first proposed. What differs is what is between: a member's log and replica, at
 * the other end of a connection that may break and be another's from then on.
 *
 * A client that has changed its member has missed what it was told meanwhile. What its session was answered is kept for it in the
 * log until it says that it has it. But of a session that has ended nothing is kept, so what it had asked for last in one that
 * saw such a change may have been done, and its caller is told that nobody knows.
 */

import { MAX_FOLLOWED, type MemberWord } from "../cluster/clients/client-words.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { type Call, type Calls, type IsWanted, withinTime } from "../cluster/services/state/calls.ts";
import { isPassing, refusalOf, unknownOutcome } from "../cluster/services/state/refusals.ts";
import type { Done, Found, Listener, Service, Told, Topic } from "../cluster/services/state/service.ts";
import type { NodeId } from "../core/protocol.ts";
import {
  type Answer,
  FIRST_CLIENT,
  type Operation,
  OWN_NAMES,
  type Query,
  refusalCodes,
  refuse,
  type SessionId,
} from "../protocols/service/coordination-service/operations.ts";
import { memberSession } from "../protocols/service/coordination-service/session.ts";
import type { SessionOptions } from "../protocols/service/coordination-service/session-options.ts";
import type { MemberSession } from "../protocols/service/coordination-service/session-vocabulary.ts";
import { Host } from "../runtime/host.ts";
import type { Slot } from "../runtime/journal/journal.ts";
import { newCounts } from "../runtime/metrics.ts";
import type { Platform } from "../runtime/platform/platform.ts";
import { sleep } from "../runtime/platform/sleep.ts";
import { type Dial, Link } from "./link.ts";

export interface RemoteServiceOptions {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly endpoints: readonly string[];
  readonly token: string | null;
  readonly dial: Dial;
  readonly session?: Partial<SessionOptions>;
  onChange(): void;
  /** No more may be followed: what is, and is of no use any more, is to be given up. */
  makeRoom(): void;
}

type Session = MemberSession["state"];

const AGAIN_MS = 20;
const LAST_WORDS_MS = 500;
const LOOK_EVERY_MS = 5;
const MAX_WAITERS = 10_000;
const MAX_READS = 1_024;
const NUMBERS_PER_MS = 1_000;
/** A command that changes nothing. */
const NOTHING: Operation = { type: "release", name: `${OWN_NAMES}alive`, token: 0 };

interface Reading {
  readonly query: Query;
  resolve(found: { revision: number; answer: Answer }): void;
  reject(error: Error): void;
}

export class RemoteService implements Service {
  readonly platform: RemoteServiceOptions["platform"];
  /** By which the log knows it: another once the log has forgotten it. Its own session goes on by one of its own. */
  self: NodeId = FIRST_CLIENT;
  readonly counts = newCounts();
  readonly maxWaiters = MAX_WAITERS;
  /** What it has read last may be older than what there is: so it is asked for where it counts. */
  readonly revision = null;
  session: SessionId | null = null;
  until: number | null = null;
  closed: CoordinationError | null = null;
  readonly link: Link;
  readonly #options: Pick<RemoteServiceOptions, "makeRoom" | "session">;
  #host: Host<MemberSession>;
  readonly #protocol: { state: Session | null } = { state: null };
  readonly #listeners = new Set<Listener>();
  readonly #own = new Set<SessionId>();
  readonly #followed = new Map<string, { topic: Topic; name: string; times: number }>();
  readonly #readings = new Map<number, Reading>();
  readonly #calls: Calls = {
    begin: () => this.use(),
    end: () => {},
    why: () => this.why,
    closed: () => this.closed,
  };
  /** Whether the member that it speaks to knows who leads the log. */
  #isLed = false;
  /** The last life that saw another member take the place of one. */
  #movedIn = 0;
  #number: number;
  #reading = 0;
  /** Where watches that have been begun go on from is known. */
  #before: Promise<unknown> = Promise.resolve();
  #keepAlives = 0;

  constructor(options: RemoteServiceOptions) {
    this.platform = options.platform;
    this.#options = options;
    this.#number = Math.floor(options.platform.clock.stamp()) * NUMBERS_PER_MS;
    this.link = new Link({
      ...options,
      onWelcome: (welcome, isFirst) => {
        this.#enter(welcome, isFirst);
        options.onChange();
      },
      onWord: (word) => this.#hear(word),
      onLost: options.onChange,
      onRefused: (error) => {
        this.close(error);
        options.onChange();
      },
    });
    this.#host = this.#startHost();
  }

  /** Why nothing is answered; empty where that is not known. */
  get why(): string {
    const { isUp, member, why } = this.link;
    if (!isUp) return `no member takes this client (${why})`;
    return this.#isLed ? "" : `member ${member} knows no leader of the log`;
  }

  use(): void {
    if (this.closed !== null) throw this.closed;
  }

  isOwn(session: SessionId): boolean {
    return this.#own.has(session);
  }

  /** A client has one run. */
  isOfThisRun(session: SessionId): boolean {
    return this.isOwn(session);
  }

  number(): number {
    this.#number += 1;
    return this.#number;
  }

  /** What is asked for from now on is done after it. */
  async current(): Promise<number> {
    const found = this.#revisionNow();
    const settled = found.then(
      () => {},
      () => {},
    );
    this.#before = Promise.all([this.#before, settled]);
    return found;
  }

  async submit<O extends Operation>(operation: O, isWanted: IsWanted): Promise<Done<O>> {
    for (;;) {
      this.use();
      await this.#before;
      this.#requireRole();
      const reply = await this.#request(operation);
      const { revision, session, result } =
        reply.type === "done"
          ? reply
          : {
              revision: 0,
              session: 0,
              result:
                reply.type === "refused"
                  ? refuse(reply.code, reply.reason)
                  : refuse("bad-operation", "an answer to something else came"),
            };
      if (result.type === "unknown") throw unknownOutcome(operation);
      if (result.type !== "refused") return { revision, session, result } as Done<O>;
      if (result.code !== "session-expired" || !isWanted()) throw refusalOf(result);
      await sleep(this.platform.timers, AGAIN_MS, { ref: false }); // It was not done, and is done in the next session.
      if (!isWanted()) throw refusalOf(result);
    }
  }

  query<Q extends Query>(query: Q): Promise<Found<Q>> {
    return new Promise((resolve, reject) => {
      this.use();
      if (this.#readings.size >= MAX_READS)
        throw refusalOf(refuse("overloaded", `${MAX_READS} reads of this client wait`));
      this.#reading += 1;
      this.#readings.set(this.#reading, { query, resolve: resolve as Reading["resolve"], reject });
      this.link.say({ type: "query", id: this.#reading, query });
    });
  }

  call<T>(call: Call, answer: (isWanted: IsWanted) => Promise<T>): Promise<T> {
    return withinTime(this.platform, call, answer, this.#calls);
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** From now on it is told what happens there, and after a gap that there may have been one. */
  follow(topic: Topic, name: string): () => void {
    const key = `${topic} ${name}`;
    if (!this.#followed.has(key)) this.#requireRoom();
    const followed = this.#followed.get(key) ?? { topic, name, times: 0 };
    followed.times += 1;
    this.#followed.set(key, followed);
    if (followed.times === 1) this.link.say({ type: "follow", topic, name });
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      followed.times -= 1;
      if (followed.times > 0) return;
      this.#followed.delete(key);
      this.link.say({ type: "unfollow", topic, name });
    };
  }

  /** @throws CoordinationError where members would take no more of this client. */
  #requireRoom(): void {
    if (this.#followed.size >= MAX_FOLLOWED) this.#options.makeRoom();
    if (this.#followed.size < MAX_FOLLOWED) return;
    const text = `this client follows ${MAX_FOLLOWED} names, which is the most: the maps that it watches, the elections that it uses, and the list of endpoints. End some, or connect another client`;
    throw refusalOf(refuse("overloaded", text));
  }

  /** What is held is lost, and nothing more is asked. */
  close(reason: CoordinationError): void {
    if (this.closed !== null) return;
    this.closed = reason;
    for (const listener of [...this.#listeners]) listener({ type: "closed", reason }, null);
    this.#listeners.clear();
    for (const { reject } of this.#readings.values()) reject(reason);
    this.#readings.clear();
  }

  /** The process exits. Ends the session without waiting for an answer: the request leaves with the last bytes of the connection. */
  departAtOnce(reason: CoordinationError): void {
    this.close(reason); // Whatever runs yet must not rely on what the session held.
    if (this.link.isUp) this.#host.carryOut({ type: "depart" });
  }

  /** Ends the session, so that what it holds is others' at once, as far as that goes quickly. */
  async depart(): Promise<void> {
    const { clock, timers } = this.platform;
    if (this.link.isUp) this.#host.carryOut({ type: "depart" });
    const until = clock.now() + LAST_WORDS_MS;
    while (this.link.isUp && this.session !== null && clock.now() < until) await sleep(timers, LOOK_EVERY_MS);
    this.#host.stop();
    this.link.close();
  }

  #startHost(): Host<MemberSession> {
    const { platform } = this;
    const protocol = memberSession(this.#options.session);
    const kept = this.#protocol;
    const seen = {
      ...protocol,
      init: (self: NodeId, peers: readonly NodeId[]) => {
        kept.state = protocol.init(self, peers);
        return kept.state;
      },
    };
    const host = new Host<MemberSession>({
      platform,
      protocol: seen,
      self: FIRST_CLIENT,
      peers: [],
      send: () => {
        throw new Error("a session sends no messages");
      },
      trace: { wanted: false, record() {} },
      slot: forgetful,
      onEvent: (event, until) => this.#onEvent(event, until),
      onFatal: (error) =>
        this.close(new CoordinationError("client-refused", "uncertain", `this client has failed: ${error.message}`)),
    });
    host.start();
    return host;
  }

  /** However much is under way: what is asked for behind it waits for it. */
  async #revisionNow(): Promise<number> {
    for (;;) {
      try {
        return (await this.query({ type: "count", name: "" })).revision;
      } catch (error) {
        if (!isPassing(error)) throw error;
      }
      await sleep(this.platform.timers, AGAIN_MS, { ref: false });
    }
  }

  async #request(operation: Operation): Promise<MemberSession["reply"]> {
    const host = this.#host;
    try {
      return await host.request({ type: "submit", operation });
    } catch (error) {
      throw this.closed ?? (host === this.#host ? error : roleLost());
    }
  }

  #requireRole(): void {
    if (this.link.role !== "read") return;
    const text =
      "a change takes the role write, and this client has the role read: give it another token or certificate";
    throw new CoordinationError("forbidden", "never-sent", text);
  }

  #enter(welcome: MemberWord & { type: "welcome" }, isFirst: boolean): void {
    this.self = welcome.client;
    for (const { topic, name } of this.#followed.values()) this.link.say({ type: "follow", topic, name });
    for (const [id, { query }] of this.#readings) this.link.say({ type: "query", id, query });
    if (isFirst) return;
    if (welcome.role === "read") this.#giveUpSession();
    this.#moved();
    if (this.session === null) return;
    this.#keepAlives = 2;
    this.#keepAlive();
  }

  /** Who may only read has none: what it held is lost at once. If it may write again, it comes as another client. */
  #giveUpSession(): void {
    this.#host.stop();
    this.#host = this.#startHost();
    this.#movedIn = 0;
    this.#keepAlives = 0;
    if (this.session !== null) this.#lost(this.session);
  }

  /** The round of the lease that was lost with the other member, and then one of its own: what is held lasts anew. */
  #keepAlive(): void {
    if (this.#keepAlives === 0) return;
    this.#keepAlives -= 1;
    this.#host.carryOut({ type: "perform", operation: NOTHING });
  }

  #moved(): void {
    this.#movedIn = this.#protocol.state?.life ?? 0;
    this.#tell({ type: "restored", revision: 0 }, null);
  }

  #hear(word: MemberWord): void {
    if (word.type === "answered") return this.#answered(word);
    if (word.type === "read") this.#settle(word.id)?.resolve(word);
    else if (word.type === "refused") {
      const code = refusalCodes.find((known) => known === word.code) ?? "overloaded";
      this.#settle(word.id)?.reject(refusalOf(refuse(code, word.reason)));
    } else if (word.type === "restored") this.#moved();
    else if (word.type === "led") this.#led(word.leader, word.term);
    else if (word.type === "told") {
      const { event } = word;
      if (event.type === "opened" && event.member === this.self) this.#own.add(event.session);
      this.#tell(event, null);
    }
  }

  #answered({ isForgotten, ...answered }: MemberWord & { type: "answered" }): void {
    const isRestored = answered.isRestored || this.#hasMissedAnswers(answered.life);
    this.#host.carryOut({ ...answered, isRestored });
    if (isForgotten) this.link.beginAnew();
  }

  /** What the last leader had not committed may be gone with it, and so may what was said to another member: it is said again. */
  #led(leader: NodeId | null, term: number): void {
    this.#isLed = leader !== null;
    this.#host.carryOut({ type: "led", leader: null, term });
    this.#host.carryOut({ type: "led", leader, term });
  }

  #settle(id: number): Reading | undefined {
    const reading = this.#readings.get(id);
    this.#readings.delete(id);
    return reading;
  }

  /** Whether answers to what is not known yet may have been told to nobody. */
  #hasMissedAnswers(life: number): boolean {
    const unresolved = this.#protocol.state?.unresolved ?? [];
    return life <= this.#movedIn || unresolved.some((each) => each.life <= this.#movedIn);
  }

  #onEvent(event: MemberSession["event"], until: number | null): void {
    if (event.type === "proposed") {
      if (this.link.role === "read") return; // Nothing of the session is a reader's to say.
      const { sequence, operation } = event.command;
      this.link.say({ type: "propose", sequence, operation });
    } else if (event.type === "began") {
      this.session = event.session;
      this.#own.add(event.session);
      this.#tell(event, null);
    } else if (event.type === "confirmed") {
      this.until = until;
      this.#tell(event, until);
      this.#keepAlive();
    } else if (event.type === "lost") this.#lost(event.session);
  }

  #lost(session: SessionId): void {
    this.#tell({ type: "lost", session }, null);
    this.#own.delete(session);
    this.session = null;
    this.until = null;
  }

  #tell(event: Told, until: number | null): void {
    for (const listener of [...this.#listeners]) listener(event, until);
  }
}

const roleLost = (): CoordinationError =>
  new CoordinationError(
    "forbidden",
    "uncertain",
    "the role of this client has become read while this was under way, so it may have been done",
  );

/** A client that ends comes back as another. */
const forgetful: Slot<never> = {
  records: [],
  append() {},
  compact() {},
  whenDurable: (then) => void Promise.resolve().then(then),
  release() {},
};
