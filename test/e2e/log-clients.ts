/**
 * Clients of a replicated log on real processes. Each client sends requests to one member after another over HTTP. All
 * results together form a history.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/random.ts";
import type { History, Operation } from "../../src/history/index.ts";
import { until } from "./cluster-under-test.ts";
import type { MembersUnderTest } from "./members-under-test.ts";

const NAMES = ["a", "b", "c", "d"];
/** The outcome of a request: its result, unknown, or never received by a member. */
type Fate = { readonly result: string } | "unknown" | "never asked";

/** The timeout of a request. Afterwards the client tries a different member, and the request may still take effect. */
const ASKS_FOR_MS = 1_000;
const THINKS_MS = [0, 40] as const;
/** How long a rejected client waits before it tries a different member. */
const RESTS_MS = 100;

export class LogClients {
  readonly #members: MembersUnderTest;
  readonly #draw: Random;
  readonly #ids: readonly number[];
  readonly #operations: Operation[] = [];
  readonly #known = new Map<string, string>();
  readonly #overheard: { operation: string; at: number }[] = [];
  #isEnding = false;
  /** Lists of keys. The last list is in use. */
  readonly #keys: string[][] = [];
  #running: Promise<void>[] = [];
  #asked = 0;
  /** The number of answered requests. */
  acknowledged = 0;

  /** @param ids the members that receive requests */
  constructor(members: MembersUnderTest, draw: Random, ids: readonly number[] = members.ids) {
    this.#members = members;
    this.#draw = draw;
    this.#ids = ids;
    this.renewKeys();
  }

  get history(): History {
    return { operations: [...this.#operations, ...this.#ofOthers()].toSorted((a, b) => a.call - b.call), remarks: [] };
  }

  /**
   * Switches the clients to new keys. Unanswered requests may take effect at any later time, and a search through many
   * such requests for one key takes long.
   */
  renewKeys(): void {
    const generation = this.#keys.length;
    this.#keys.push(NAMES.map((name) => `${name}${generation}`));
  }

  /**
   * Adds an operation that a different process requested. It has been executed, and its result is unknown. A Byzantine
   * member requests only operations that it has seen, so its request is never earlier than the original.
   */
  overhear(operation: string): void {
    this.#overheard.push({ operation, at: performance.now() });
  }

  #ofOthers(): Operation[] {
    return this.#overheard.flatMap(({ operation, at }, index) => {
      const [f = "", key = ""] = operation.split(" ");
      if (!["put", "cas", "delete"].includes(f)) return []; // The operation only reads.
      const call = Math.min(...this.#operations.filter(({ input }) => input === operation).map((asked) => asked.call));
      const process = this.#asked + 1 + index;
      const from = Number.isFinite(call) ? call : 0;
      return { process, f, key, input: operation, line: null, call: from, output: undefined, return: at };
    });
  }

  start(count: number): void {
    this.#running = Array.from({ length: count }, () => this.#live());
  }

  stop(): void {
    this.#isEnding = true;
  }

  /** Waits until more than `than` requests have been answered. */
  async progress(than: number): Promise<void> {
    const members = this.#members;
    const draw = this.#draw;
    await until(
      () => `a client is answered, but ${members.errors}`,
      async () => {
        if (this.#running.length === 0) await this.#ask(draw.pick(this.#ids), "get a0");
        return this.acknowledged > than;
      },
    );
  }

  /** Stops the clients. Then reads every key that was ever in use through every member. */
  async end(): Promise<void> {
    this.stop();
    await Promise.all(this.#running);
    await Promise.all(
      this.#ids.map(async (id) => {
        for (const key of this.#keys.flat())
          await until(`member ${id} answers`, () => this.#ask(id, `get ${key}`), this.#members.running.get(id));
      }),
    );
  }

  /** Returns the leader according to the first member that knows one. */
  async leader(): Promise<number | null> {
    for (const id of this.#ids) {
      const status = await fetch(`${this.#members.adminOf(id)}/status`, { signal: AbortSignal.timeout(500) })
        .then((answer) => answer.json() as Promise<{ leader: number | null }>)
        .catch(() => null);
      if (typeof status?.leader === "number") return status.leader;
    }
    return null;
  }

  async #live(): Promise<void> {
    const draw = this.#draw;
    let member = draw.pick(this.#ids);
    while (!this.#isEnding) {
      const isAnswered = await this.#ask(member, this.#wish());
      if (!isAnswered) member = draw.pick(this.#ids);
      await sleep(isAnswered ? draw.between(...THINKS_MS) : RESTS_MS);
    }
  }

  #wish(): string {
    const key = this.#draw.pick(this.#keys.at(-1) as string[]);
    const value = `v${this.#asked}`;
    switch (this.#draw.below(6)) {
      case 0:
        return `delete ${key}`;
      case 1:
        return `cas ${key} ${this.#known.get(key) ?? ""} ${value}`;
      case 2:
      case 3:
        return `put ${key} ${value}`;
      default:
        return `get ${key}`;
    }
  }

  /** Sends one request. Resolves with whether it was answered. */
  async #ask(member: number, operation: string): Promise<boolean> {
    const call = performance.now();
    this.#asked += 1;
    const process = this.#asked;
    const fate = await this.#fate(member, operation);
    if (fate === "never asked") return false;
    const [f = "", key = ""] = operation.split(" ");
    const asked = { process, f, key, input: operation, call, line: null };
    if (fate === "unknown") {
      this.#operations.push({ ...asked, output: undefined, return: null });
      return false;
    }
    if (f === "get") this.#known.set(key, fate.result);
    this.#operations.push({ ...asked, output: fate.result, return: performance.now() });
    this.acknowledged += 1;
    return true;
  }

  async #fate(member: number, operation: string): Promise<Fate> {
    try {
      const answer = await fetch(`${this.#members.adminOf(member)}/request`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ type: "client", body: { type: "execute", operation } }),
        signal: AbortSignal.timeout(ASKS_FOR_MS),
      });
      const { body } = (await answer.json()) as { body?: { type: string; result: string } };
      return body?.type === "result" ? { result: body.result } : "unknown";
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as { code?: string };
      return code === "ECONNREFUSED" ? "never asked" : "unknown";
    }
  }
}
