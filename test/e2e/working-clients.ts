/**
 * Clients of a cluster that use all shared objects, over WebSocket and over plain HTTP, while a test disturbs the
 * members. Operations on keys form a history. Everything else is checked immediately.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/random.ts";
import type { History, Operation, Value } from "../../src/history/index.ts";
import { type Change, type Client, CoordinationError, connect } from "../../src/index.ts";
import { ExclusiveUse } from "../testing/exclusive-use.ts";
import { until } from "./cluster-under-test.ts";
import { SharingClients } from "./sharing-clients.ts";

const CLIENTS = 4;
const KEYS = ["a", "b", "c", "d"];
const WITHIN = { timeoutMs: 60_000 };
const HTTP_WITHIN_MS = 1_000;
/** The pause between two calls of the same kind by one client. */
const THINKS_MS = [0, 60] as const;
/** Longer pauses for the other shared objects, because there are many kinds of them. */
const THINKS_LONGER_MS = [0, 400] as const;
const HOLDS_MS = [0, 50] as const;

/** The current client endpoints of members. */
export type Endpoints = () => readonly string[];
type Asked = Pick<Operation, "f" | "key" | "input">;

export class WorkingClients {
  readonly #endpoints: Endpoints;
  readonly #draw: Random;
  /** Violations, as sentences. */
  readonly wrong: string[] = [];
  acknowledged = 0;
  readonly #exclusive = new ExclusiveUse(() => performance.now());
  readonly #sharing: SharingClients;
  readonly #operations: Operation[] = [];
  readonly #clients: Client[] = [];
  readonly #told: Change<string>[][] = [];
  /** Keys and revisions of acknowledged puts. Every watch must report them. */
  readonly #put: { readonly key: string; readonly revision: number }[] = [];
  readonly #queued = { added: new Set<string>(), perhaps: new Set<string>(), done: new Set<string>() };
  #added = 0;
  #perhaps = 0;
  #moved = 0;
  #asked = 0;
  #generation = 0;
  #isEnding = false;
  #working: Promise<unknown>[] = [];

  constructor(endpoints: Endpoints, draw: Random) {
    this.#endpoints = endpoints;
    this.#draw = draw;
    this.#sharing = new SharingClients(draw.stream("sharing"));
  }

  get history(): History {
    return { operations: this.#operations.toSorted((a, b) => a.call - b.call), remarks: [] };
  }

  get account(): string {
    const { count } = this.#exclusive;
    const calls = `${this.acknowledged} calls acknowledged, ${this.#added} additions, ${this.#moved} transfers`;
    const queued = `${count} grants, ${this.#queued.done.size} items done, ${this.#told[0]?.length ?? 0} changes watched`;
    return `${calls}, ${queued}, ${this.#sharing.account}`;
  }

  /** Starts the clients. Each client gets one endpoint, and discovers the others. */
  async start(): Promise<void> {
    for (let number = 1; number <= CLIENTS; number++) {
      const client = await connect({ endpoints: [this.#draw.pick(this.#endpoints())], ...WITHIN });
      this.#clients.push(client);
      this.#watch(client);
      this.#working.push(
        this.#repeat(() => this.#useKeys(client, number)),
        this.#repeat(() => this.#count(client)),
        this.#repeat(() => this.#transfer(client)),
        this.#repeat(() => this.#lock(client, number)),
        this.#repeat(() => this.#queue(client)),
        ...this.#sharing.worksOf(client, number).map((work) => this.#repeat(work, THINKS_LONGER_MS)),
      );
    }
    this.#working.push(this.#repeat(() => this.#askOverHttp()));
  }

  stop(): void {
    this.#isEnding = true;
  }

  /** Switches the clients to new keys, because many unanswered calls of one key make the check slow. */
  renewKeys(): void {
    this.#generation += 1;
  }

  /** Waits until every kind of work has made progress. @throws Error for violations so far */
  async progress(): Promise<void> {
    const before = this.#done();
    await until(
      () =>
        `all work of clients makes progress, but after ${JSON.stringify(before)} it is ${JSON.stringify(this.#done())}`,
      () => {
        if (this.wrong.length > 0) throw new Error(this.wrong.slice(0, 5).join("\n"));
        return Object.entries(this.#done()).every(([what, count]) => count > (before[what] ?? 0));
      },
    );
  }

  /** Returns how often each kind of work has been done. Calls are counted in units of twenty. */
  #done(): Readonly<Record<string, number>> {
    const { stale: _whereOthersWrote, ...sharing } = this.#sharing.counts;
    const { size: items } = this.#queued.done;
    const calls = Math.floor(this.acknowledged / 20);
    return { calls, grants: this.#exclusive.count, items, transfers: this.#moved, ...sharing };
  }

  /** Stops the clients, and checks the final state. */
  async end(): Promise<void> {
    this.stop();
    await Promise.all(this.#working);
    const [client] = this.#clients as [Client];
    const total = await client.counter("all").get(WITHIN);
    if (total < this.#added || total > this.#added + this.#perhaps)
      this.wrong.push(`the counter is ${total}; ${this.#added} additions are certain, ${this.#perhaps} more may be`);
    await this.#readAccounts(client);
    await this.#sharing.requireLarge(client).catch((error: unknown) => this.wrong.push(String(error)));
    if (this.#sharing.counts.stale === 0) this.wrong.push("no client wrote with an old token");
    await this.#emptyQueue(client);
    await client.map<string>("keys").put("end", "", WITHIN);
    await until("every watch has reported all changes", () => this.#told.every((told) => told.at(-1)?.key === "end"));
    this.#requireSameChanges();
    await Promise.all(this.#clients.map((each) => each.close()));
  }

  /** Stops the clients without waiting for pending calls. */
  async abandon(): Promise<void> {
    this.stop();
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async #repeat(work: () => Promise<void>, thinksMs: readonly [number, number] = THINKS_MS): Promise<void> {
    while (!this.#isEnding) {
      try {
        await work();
      } catch (error) {
        if (!(error instanceof CoordinationError) && !this.#isEnding) this.wrong.push(String(error));
      }
      await sleep(this.#draw.between(...thinksMs));
    }
  }

  async #useKeys(client: Client, number: number): Promise<void> {
    const key = `${this.#draw.pick(KEYS)}${this.#generation}`;
    const map = client.map<string>("keys");
    const value = `${number}: ${this.#asked}`;
    switch (this.#draw.below(5)) {
      case 0:
        return this.#record({ f: "delete", key, input: null }, () => map.delete(key, WITHIN));
      case 1:
      case 2:
        return this.#record({ f: "put", key, input: value }, async () => {
          this.#put.push({ key, revision: await map.put(key, value, WITHIN) });
          return null;
        });
      default:
        return this.#record({ f: "get", key, input: null }, async () => (await map.get(key, WITHIN)) ?? null);
    }
  }

  /** Makes a call over HTTP. It may take effect after the caller has given up. */
  async #askOverHttp(): Promise<void> {
    const key = `${this.#draw.pick(KEYS)}${this.#generation}`;
    const url = `${this.#draw.pick(this.#endpoints())}/v1/maps/keys/keys/${key}`;
    const signal = AbortSignal.timeout(HTTP_WITHIN_MS);
    if (this.#draw.below(2) === 0)
      return this.#record({ f: "get", key, input: null }, async () => {
        const answer = await asked(url, { signal });
        return answer.status === 404 ? null : ((answer.body as { value: string }).value ?? null);
      });
    const value = `http: ${this.#asked}`;
    const headers = { "content-type": "application/json" };
    return this.#record({ f: "put", key, input: value }, async () => {
      await asked(url, { method: "PUT", headers, body: JSON.stringify({ value, timeoutMs: HTTP_WITHIN_MS }), signal });
      return null;
    });
  }

  async #record({ f, key, input }: Asked, ask: () => Promise<Value>): Promise<void> {
    const call = performance.now();
    this.#asked += 1;
    const operation = { process: this.#asked, f, key, input, call, line: null };
    try {
      const output = await ask();
      this.#operations.push({ ...operation, output, return: performance.now() });
      this.acknowledged += 1;
    } catch (error) {
      if (isNeverSent(error)) return;
      this.#operations.push({ ...operation, output: undefined, return: null });
    }
  }

  async #count(client: Client): Promise<void> {
    try {
      await client.counter("all").add(1, { timeoutMs: 5_000 });
      this.#added += 1;
    } catch (error) {
      if (!isNeverSent(error)) this.#perhaps += 1;
    }
  }

  /** Moves an amount between accounts. The sum of the accounts is always zero. */
  async #transfer(client: Client): Promise<void> {
    const accounts = client.map<number>("accounts");
    await client.transaction(async (transaction) => {
      const from = (await transaction.get(accounts, "from")) ?? 0;
      const to = (await transaction.get(accounts, "to")) ?? 0;
      transaction.put(accounts, "from", from - 1);
      transaction.put(accounts, "to", to + 1);
    }, WITHIN);
    this.#moved += 1;
    await this.#readAccounts(client);
  }

  async #readAccounts(client: Client): Promise<void> {
    const { entries } = await client.map<number>("accounts").range(WITHIN);
    const sum = entries.reduce((all, { value }) => all + value, 0);
    const moved = entries.find(({ key }) => key === "to")?.value ?? 0;
    if (sum !== 0) this.wrong.push(`the accounts hold ${sum} together: ${JSON.stringify(entries)}`);
    if (moved < this.#moved && this.#isEnding) this.wrong.push(`${this.#moved} was transferred, and ${moved} is there`);
  }

  async #lock(client: Client, number: number): Promise<void> {
    const grant = await client.mutex("one").acquire(WITHIN);
    try {
      this.#exclusive.enter(
        "the lock",
        number,
        grant,
        () => performance.now(),
        () => true,
      );
      await sleep(this.#draw.between(...HOLDS_MS));
    } finally {
      await grant.release();
    }
  }

  async #queue(client: Client): Promise<void> {
    const queue = client.queue<string>("items");
    const name = `item ${this.#asked++}`;
    this.#queued.perhaps.add(name);
    await queue.add(name, WITHIN);
    this.#queued.added.add(name);
    const taken = await queue.take(WITHIN);
    await taken.done(WITHIN);
    this.#isDone(taken.item);
  }

  #isDone(item: string): void {
    if (this.#queued.done.has(item)) this.wrong.push(`${item} was done twice`);
    if (!this.#queued.perhaps.has(item)) this.wrong.push(`${item} was taken, but no client added it`);
    this.#queued.done.add(item);
  }

  async #emptyQueue(client: Client): Promise<void> {
    const queue = client.queue<string>("items");
    while ((await queue.size(WITHIN)) > 0) {
      const taken = await queue.take(WITHIN);
      await taken.done(WITHIN);
      this.#isDone(taken.item);
    }
  }

  #watch(client: Client): void {
    const told: Change<string>[] = [];
    this.#told.push(told);
    void (async () => {
      for await (const change of client.map<string>("keys").watch({ after: 0 })) told.push(change);
    })().catch((error: unknown) => {
      if (!this.#isEnding) this.wrong.push(`a watch ended: ${error}`);
    });
  }

  #requireSameChanges(): void {
    const [first = [], ...others] = this.#told;
    for (const other of others)
      if (JSON.stringify(other) !== JSON.stringify(first))
        this.wrong.push(`one watch received ${other.length} changes, another ${first.length}, or in another order`);
    const revisions = new Map(first.map((change) => [change.revision, change.key]));
    for (const { key, revision } of this.#put)
      if (revisions.get(revision) !== key) this.wrong.push(`no watch received ${key} at revision ${revision}`);
    if (revisions.size < first.length) this.wrong.push("a watch received one revision twice");
  }
}

const isNeverSent = (error: unknown): boolean => {
  if (error instanceof CoordinationError) return error.phase === "never-sent";
  const { code } = ((error as Error).cause ?? {}) as { code?: string };
  return code === "ECONNREFUSED";
};

async function asked(url: string, init: RequestInit): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(url, init);
  const body: unknown = await answer.json();
  if (!answer.ok && answer.status !== 404) throw new Error(`${url} answers ${answer.status}: ${JSON.stringify(body)}`);
  return { status: answer.status, body };
}
