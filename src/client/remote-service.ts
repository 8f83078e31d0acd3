/**
 * The replicated service for a client. The client runs its session itself, with the same protocol as members. It opens
 * the session, numbers its commands, repeats them until they are answered, and renews its lease. It measures the lease
 * with its own clock, from when a keep-alive was first proposed. Only the transport is different: the log and replica
 * are at a member, at the other end of a connection that may break and move to a different member.
 *
 * A client that moves to a different member misses messages during the move. The log retains a session's answers until
 * the client confirms them, but retains nothing from a session that has ended. A command that was pending during such a
 * move, in a session that then ended, may therefore have been applied. Its caller gets `outcome-unknown`.
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
  /** Called when the limit on followed names has been reached. It should stop following unused ones. */
  makeRoom(): void;
}

type Session = MemberSession["state"];

const AGAIN_MS = 20;
const LAST_WORDS_MS = 500;
const LOOK_EVERY_MS = 5;
const MAX_WAITERS = 10_000;
const MAX_READS = 1_024;
const NUMBERS_PER_MS = 1_000;
/** An operation that changes nothing. */
const NOTHING: Operation = { type: "release", name: `${OWN_NAMES}alive`, token: 0 };

interface Reading {
  readonly query: Query;
  resolve(found: { revision: number; answer: Answer }): void;
  reject(error: Error): void;
}

/** A client's service, over its link to a member. */
export class RemoteService implements Service {
  readonly platform: RemoteServiceOptions["platform"];
  /**
   * The client's id in the log. It changes if the log has garbage-collected the client. The session protocol has a
   * separate id, which does not change.
   */
  self: NodeId = FIRST_CLIENT;
  readonly counts = newCounts();
  readonly maxWaiters = MAX_WAITERS;
  /** Always null. A client's last read may be outdated, so callers that need a revision request it. */
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
  /** Whether the connected member knows who leads the log. */
  #isLed = false;
  /** The last incarnation of the session that was affected by a move to a different member. */
  #movedIn = 0;
  #number: number;
  #reading = 0;
  /** Settles once every watch that has started so far knows its start revision. */
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

  /** Why calls are not being answered, as a clause. Empty if unknown. */
  get why(): string {
    const { isUp, member, why } = this.link;
    if (!isUp) return `no member accepts this client (${why})`;
    return this.#isLed ? "" : `member ${member} does not know who leads the log`;
  }

  use(): void {
    if (this.closed !== null) throw this.closed;
  }

  isOwn(session: SessionId): boolean {
    return this.#own.has(session);
  }

  /** Whether the session belongs to this client, which has only one incarnation. */
  isOfThisRun(session: SessionId): boolean {
    return this.isOwn(session);
  }

  number(): number {
    this.#number += 1;
    return this.#number;
  }

  /** Returns the current revision. Operations submitted later take effect after it. */
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
                  : refuse("bad-operation", "unexpected answer"),
            };
      if (result.type === "unknown") throw unknownOutcome(operation);
      if (result.type !== "refused") return { revision, session, result } as Done<O>;
      if (result.code !== "session-expired" || !isWanted()) throw refusalOf(result);
      // The operation was not applied, so it is repeated in the next session.
      await sleep(this.platform.timers, AGAIN_MS, { ref: false });
      if (!isWanted()) throw refusalOf(result);
    }
  }

  query<Q extends Query>(query: Q): Promise<Found<Q>> {
    return new Promise((resolve, reject) => {
      this.use();
      if (this.#readings.size >= MAX_READS)
        throw refusalOf(refuse("overloaded", `this client already has ${MAX_READS} pending reads`));
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

  /** Starts reporting changes under the given name, and possible gaps in these reports. */
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

  /** @throws CoordinationError if members would not let this client follow more names */
  #requireRoom(): void {
    if (this.#followed.size >= MAX_FOLLOWED) this.#options.makeRoom();
    if (this.#followed.size < MAX_FOLLOWED) return;
    const text = `this client already follows ${MAX_FOLLOWED} names, which is the maximum: end some watches or elections, or connect another client`;
    throw refusalOf(refuse("overloaded", text));
  }

  /** Ends all grants with the given reason. Later calls are rejected. */
  close(reason: CoordinationError): void {
    if (this.closed !== null) return;
    this.closed = reason;
    for (const listener of [...this.#listeners]) listener({ type: "closed", reason }, null);
    this.#listeners.clear();
    for (const { reject } of this.#readings.values()) reject(reason);
    this.#readings.clear();
  }

  /**
   * Ends the session without waiting for an answer. The request is among the last bytes on the connection. Called when
   * the process exits.
   */
  departAtOnce(reason: CoordinationError): void {
    this.close(reason); // Code that is still running must not rely on the session.
    if (this.link.isUp) this.#host.carryOut({ type: "depart" });
  }

  /** Ends the session and waits briefly, so that other members and clients can acquire its locks immediately. */
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

  /** Requests the current revision. Retries if the log is overloaded, since later operations wait for this revision. */
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
      "a change requires the role write, but this client has the role read: use another token or certificate";
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

  /**
   * Gives up the session, because a client with the role `read` has none. The client loses its grants immediately. If
   * it is allowed to write again later, it gets a new client id.
   */
  #giveUpSession(): void {
    this.#host.stop();
    this.#host = this.#startHost();
    this.#movedIn = 0;
    this.#keepAlives = 0;
    if (this.session !== null) this.#lost(this.session);
  }

  /**
   * Renews the lease after a move. This happens twice, since the first renewal may repeat a round that was lost with
   * the previous member. The second renewal begins at the new member.
   */
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

  /**
   * Proposes pending commands again. A new leader may lack those that were not committed, and the previous member may
   * not have forwarded them.
   */
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

  /** Whether an answer to a pending command may have been sent to a connection that had ended. */
  #hasMissedAnswers(life: number): boolean {
    const unresolved = this.#protocol.state?.unresolved ?? [];
    return life <= this.#movedIn || unresolved.some((each) => each.life <= this.#movedIn);
  }

  #onEvent(event: MemberSession["event"], until: number | null): void {
    if (event.type === "proposed") {
      if (this.link.role === "read") return; // A client with the role `read` must not use the session.
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
    "this client's role changed to read during the call, which may have taken effect",
  );

/** A client's journal, which stores nothing. After a restart, a process is a new client. */
const forgetful: Slot<never> = {
  records: [],
  append() {},
  compact() {},
  whenDurable: (then) => void Promise.resolve().then(then),
  release() {},
};
