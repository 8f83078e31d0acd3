/**
 * The activities of a member's or client's process in the swarm. The process uses all shared objects, and every call is
 * recorded.
 */
import type { Client } from "../../../src/client/client.ts";
import { serviceOf } from "../../../src/client/client.ts";
import type { JoinedMember } from "../../../src/cluster/services/joined-member.ts";
import type { Told } from "../../../src/cluster/services/state/service.ts";
import { CoordinationError, type Member, type SharedMap, type Tenure } from "../../../src/index.ts";
import type { ProcessTools } from "../../../src/testing/index.ts";
import type { ExclusiveUse } from "../exclusive-use.ts";
import type { Histories } from "./histories.ts";
import type { SharedWork } from "./shared-work.ts";
import type { Effects } from "./transaction-store.ts";
import type { Watched, Watches } from "./watches.ts";

export type User = Member | Client;

/**
 * Keys in the map `state`. Each key in `singles` is an object by itself. The keys in `together` are used in
 * transactions, and form one object.
 */
export const singles = ["s1", "s2", "s3"];
export const together = ["t1", "t2", "t3"];
export const counters = ["c1", "c2"];

/** The recorders shared by all participants, and the activities in the run. */
export interface Swarm {
  readonly histories: Histories;
  readonly watches: Watches;
  readonly exclusive: ExclusiveUse;
  readonly work: SharedWork;
  /** Activities in addition to reads, writes and watches. */
  readonly does: ReadonlySet<"lock" | "lead" | "queue">;
  readonly counts: Counts;
  isEnding: boolean;
  done(item: string): void;
}

export interface Counts {
  /** The number of log snapshots that replicas have installed. */
  snapshotsInstalled: number;
  sessionsExpired: number;
  leaderships: number;
}

/** The maximum pauses between two calls of the same kind, and between two recorded calls. */
const PAUSE_MS = 350;
const SHARE_PAUSE_MS = 200;

export class Participant {
  readonly #swarm: Swarm;
  readonly #runs: (user: User) => boolean;
  /** The session that the process reported most recently. */
  session: number | null = null;
  /** The number of sessions lost while there were no faults. `calm.ts` checks it. */
  lost = 0;
  readonly map: SharedMap<string>;
  #written = 0;
  #isAlive = true;

  constructor(
    readonly name: string,
    /** The id of the process's machine. */
    readonly id: number,
    readonly user: User,
    readonly tools: ProcessTools,
    swarm: Swarm,
    runs: (user: User) => boolean,
  ) {
    this.#swarm = swarm;
    this.#runs = runs;
    this.map = user.map<string>("state");
    const host = isMember(user) ? (user as JoinedMember).state.host : serviceOf(user);
    host.listen((event: Told) => this.#hear(event));
  }

  /** Whether the process is running and is still a member or client. */
  get isAlive(): boolean {
    this.#isAlive &&= this.#runs(this.user) && !this.user.signal.aborted;
    return this.#isAlive;
  }

  async live(): Promise<void> {
    const { user } = this;
    const swarm = this.#swarm;
    const does = [
      ...(swarm.does.has("lock") ? [() => this.#lock()] : []),
      ...(swarm.does.has("lead") ? [() => this.#lead()] : []),
      ...(swarm.does.has("queue") ? [() => this.#queue()] : []),
      ...(isMember(user) ? swarm.work.kindsFor(user, this.tools) : []),
    ];
    await Promise.all([
      this.#watch(),
      this.#again(() => this.#share(), SHARE_PAUSE_MS),
      ...does.map((work) => this.#again(work, PAUSE_MS)),
    ]);
  }

  /** Returns a value that is not used anywhere else. */
  value(): string {
    this.#written += 1;
    return `${this.name}.${this.#written}`;
  }

  async #again(work: () => unknown, pauseMs: number): Promise<void> {
    while (!this.#swarm.isEnding) {
      await this.attempt(work);
      await this.tools.sleep(this.tools.random() * pauseMs);
    }
  }

  /** Runs an activity. Expected errors do not end the process, unless it is no longer a member. */
  async attempt(act: () => unknown): Promise<void> {
    try {
      await act();
    } catch (error) {
      const isExpected = error instanceof CoordinationError || (error as Error).name === "AbortError";
      if (!isExpected || this.user.signal.aborted) throw error;
    }
  }

  #hear(event: Told): void {
    const { counts } = this.#swarm;
    if (event.type === "restored" && isMember(this.user)) counts.snapshotsInstalled += 1;
    else if (event.type === "confirmed") this.session = event.session;
    else if (event.type === "lost") {
      counts.sessionsExpired += 1;
      this.lost += 1;
    }
  }

  #share(): Promise<unknown> {
    const { random } = this.tools;
    const within = { timeoutMs: 300 + random() * 1_500 };
    const draw = random();
    if (draw < 0.4) return this.#transact(within);
    if (draw < 0.55) return this.#count(within);
    return this.#useKey(within);
  }

  /** Reads and writes some of the keys atomically. */
  #transact(within: { timeoutMs: number }): Promise<unknown> {
    const { user, map, tools } = this;
    const isRead = together.filter(() => tools.random() < 0.6);
    const isWritten = together.filter(() => tools.random() < 0.5);
    const effects: { -readonly [K in keyof Effects]: Record<string, string | null> } = { reads: {}, writes: {} };
    const deletes = tools.random() < 0.15;
    const asked = { kind: "store", f: "transaction", input: effects } as const;
    return this.#swarm.histories.note(this.name, asked, async () => {
      await user.transaction(async (transaction) => {
        effects.reads = {}; // If there was an earlier attempt, it read a stale value and had no effect.
        effects.writes = {};
        for (const key of isRead) effects.reads[key] = (await transaction.get(map, key)) ?? null;
        for (const [at, key] of isWritten.entries()) {
          effects.writes[key] = deletes && at === 0 ? null : this.value();
          if (effects.writes[key] === null) transaction.delete(map, key);
          else transaction.put(map, key, effects.writes[key]);
        }
      }, within);
      return true;
    });
  }

  #count(within: { timeoutMs: number }): Promise<unknown> {
    const { user, tools } = this;
    const key = counters[Math.floor(tools.random() * counters.length)] as string;
    const counter = user.counter(key);
    const { histories } = this.#swarm;
    if (tools.random() < 0.3)
      return histories.note(this.name, { kind: "counter", f: "read", key, input: null }, () => counter.get(within));
    const by = 1 + Math.floor(tools.random() * 3);
    return histories.note(this.name, { kind: "counter", f: "add", key, input: by }, () => counter.add(by, within));
  }

  #useKey(within: { timeoutMs: number }): Promise<unknown> {
    const { map, tools } = this;
    const isSingle = tools.random() < 0.5;
    const keys = isSingle ? singles : together;
    const key = keys[Math.floor(tools.random() * keys.length)] as string;
    /** The history of a single key identifies the object by that key. Other keys are part of the input. */
    const of = isSingle ? ({ kind: "map", key } as const) : ({ kind: "store" } as const);
    const named = (...rest: (string | null)[]) =>
      isSingle ? (rest.length === 1 ? (rest[0] ?? null) : rest) : [key, ...rest];
    const { histories } = this.#swarm;
    const draw = tools.random();
    if (draw < 0.35) {
      const input = isSingle ? null : key;
      return histories.note(this.name, { ...of, f: "get", input }, async () => (await map.get(key, within)) ?? null);
    }
    if (draw < 0.65) {
      const value = this.value();
      return histories.note(this.name, { ...of, f: "put", input: named(value) }, () => this.#put(key, value, within));
    }
    if (draw < 0.75) {
      const input = isSingle ? null : key;
      return histories.note(this.name, { ...of, f: "delete", input }, () => map.delete(key, within));
    }
    return this.#compareAndSet(key, (old, next) => ({ ...of, f: "cas", input: named(old, next) }), within);
  }

  async #put(key: string, value: string, within: { timeoutMs: number }): Promise<null> {
    try {
      this.#swarm.watches.acknowledge(key, value, await this.map.put(key, value, within));
      return null;
    } catch (error) {
      if (error instanceof CoordinationError && error.phase === "never-sent") this.#swarm.watches.neverWritten(value);
      throw error;
    }
  }

  /** Each value is written only once, so comparing the value is equivalent to comparing its revision. */
  async #compareAndSet(
    key: string,
    asked: (old: string | null, next: string) => Parameters<Histories["note"]>[1],
    within: { timeoutMs: number },
  ): Promise<void> {
    const entry = await this.map.entry(key, within);
    const next = this.value();
    await this.#swarm.histories.note(this.name, asked(entry?.value ?? null, next), async () => {
      const revision = await this.map.compareAndSet(key, entry?.revision ?? 0, next, within);
      if (revision !== null) this.#swarm.watches.acknowledge(key, next, revision);
      return revision !== null;
    });
  }

  async #lock(): Promise<void> {
    const { tools, user } = this;
    const grant = await user.mutex("one").acquire({ timeoutMs: 200 + tools.random() * 3_000 });
    this.#enter("the lock", grant);
    await tools.sleep(tools.random() * 200);
    await grant.release();
  }

  async #lead(): Promise<void> {
    const { tools, user } = this;
    const swarm = this.#swarm;
    const over = new AbortController();
    // This candidate may never be elected.
    const giveUp = tools.setTimeout(() => over.abort(), 200 + tools.random() * 2_000);
    await (user as Member).election("report").lead(async (leadership) => {
      tools.clearTimeout(giveUp);
      swarm.counts.leaderships += 1;
      this.#enter("the election", leadership);
      await tools.sleep(tools.random() * 300, undefined, { signal: leadership.signal });
    }, over);
  }

  #enter(what: string, tenure: Tenure): void {
    this.#swarm.exclusive.enter(what, this.id, tenure, this.tools.now, () => this.isAlive);
  }

  async #queue(): Promise<void> {
    const { tools, user } = this;
    const swarm = this.#swarm;
    const queue = user.queue<string>("items");
    await queue.add(this.value(), { timeoutMs: 1_000 });
    const item = await queue.take({ timeoutMs: 2_000 });
    await tools.sleep(tools.random() * 100);
    await item.done({ timeoutMs: 1_000 });
    swarm.done(item.item);
  }

  /** Watches from the beginning or, once early changes have been compacted, from the current entries. */
  async #watch(): Promise<void> {
    const { watches } = this.#swarm;
    for (let watched = watches.begin(this.name, 0, null); ; watched = await this.#beginAnew()) {
      try {
        for await (const change of this.map.watch({ after: watched.after })) {
          watched.changes.push(change);
          if (!this.#swarm.isEnding && this.tools.random() < 0.02) await this.tools.sleep(this.tools.random() * 500);
        }
        return;
      } catch (error) {
        if (!(error instanceof CoordinationError) || error.code !== "compacted") return;
      }
    }
  }

  async #beginAnew(): Promise<Watched> {
    for (;;) {
      let begun: Watched | null = null;
      await this.attempt(async () => {
        const { revision, entries } = await this.map.range({ timeoutMs: 1_000 });
        begun = this.#swarm.watches.begin(this.name, revision, entries);
      });
      if (begun !== null) return begun;
      await this.tools.sleep(100);
    }
  }
}

export const isMember = (user: User): user is Member => "replicated" in user;
