/**
 * Transactions: what is read is noted with its revision, what is written is kept until the end. Then all of it is one command: if
 * nothing that was read has changed, all is written; otherwise the work is done anew.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Step } from "../../../protocols/service/coordination-service/operations.ts";
import { CoordinationError } from "../coordination-error.ts";
import { requireOptions, requireRule, work as workRule } from "../known-options.ts";
import { callRules } from "./calls.ts";
import { limits } from "./limits.ts";
import { LocalMap, MAX_TRIES, requireKey, tooOften } from "./local-map.ts";
import type { Service } from "./service.ts";
import type { CallOptions, SharedMap, Transaction } from "./state-api.ts";
import { parsedValue, textOf } from "./value-text.ts";

const WHAT = "the transaction";

export async function transact<R>(
  service: Service,
  work: (transaction: Transaction) => R | Promise<R>,
  options: CallOptions,
): Promise<R> {
  requireOptions("transaction", options, callRules);
  requireRule("the work of transaction()", work, workRule);
  service.use();
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const attempt = new Attempt(service, options);
    const result = await work(attempt);
    if (await attempt.commit()) return result;
  }
  throw new CoordinationError("overloaded", "never-sent", tooOften("what a transaction had read"));
}

/** What stands under a key as the transaction sees it: as it was read, or as it has been written since. */
interface Touched {
  readonly map: string;
  readonly key: string;
  /** At which it was read, 0 if nothing stood there; null: it was not. */
  revision: number | null;
  /** Null: nothing. */
  text: string | null;
  isWritten: boolean;
}

class Attempt implements Transaction {
  readonly #service: Service;
  readonly #options: CallOptions;
  readonly #touched = new Map<string, Touched>();
  #isOver = false;

  constructor(service: Service, options: CallOptions) {
    this.#service = service;
    this.#options = options;
  }

  async get<T>(map: SharedMap<T>, key: string): Promise<T | undefined> {
    const touched = await this.#read(nameOf(map), key);
    return touched.text === null ? undefined : (parsedValue(touched.text) as T);
  }

  put<T>(map: SharedMap<T>, key: string, value: T): void {
    this.#write(nameOf(map), key, textOf(value, `the value of "${key}"`, limits.valueBytes));
  }

  delete<T>(map: SharedMap<T>, key: string): void {
    this.#write(nameOf(map), key, null);
  }

  /** @returns whether nothing that was read had changed. */
  async commit(): Promise<boolean> {
    this.#isOver = true;
    const all = [...this.#touched.values()];
    const unchanged = all.flatMap(({ map, key, revision }) =>
      revision === null ? [] : [{ type: "revision" as const, map, key, revision }],
    );
    const steps = all.flatMap((touched) => (touched.isWritten ? [stepOf(touched)] : []));
    if (all.length === 0) return true;
    return this.#service.call({ what: WHAT, changes: steps.length > 0, ...this.#options }, async (isWanted) => {
      const { result } = await this.#service.submit(
        { type: "transaction", compare: unchanged, success: steps, failure: [] },
        isWanted,
      );
      return result.succeeded;
    });
  }

  async #read(map: string, key: string): Promise<Touched> {
    this.#requireOpen();
    requireKey(key);
    const known = this.#known(map, key);
    if (known !== undefined) return known;
    const { entry } = await this.#service.call({ what: WHAT, changes: false, ...this.#options }, async () => {
      return (await this.#service.query({ type: "get", map, key })).answer;
    });
    const meanwhile = this.#known(map, key); // It may have been written while it was read.
    if (meanwhile !== undefined) return meanwhile;
    const touched = { map, key, revision: entry?.revision ?? 0, text: entry?.value ?? null, isWritten: false };
    this.#note(touched);
    return touched;
  }

  #write(map: string, key: string, text: string | null): void {
    this.#requireOpen();
    requireKey(key);
    const known = this.#known(map, key) ?? { map, key, revision: null, text, isWritten: true };
    known.text = text;
    known.isWritten = true;
    this.#note(known);
  }

  #known(map: string, key: string): Touched | undefined {
    return this.#touched.get(JSON.stringify([map, key]));
  }

  #note(touched: Touched): void {
    this.#touched.set(JSON.stringify([touched.map, touched.key]), touched);
    if (this.#touched.size <= limits.transactionKeys) return;
    throw new UsageError(
      "too-large",
      unexpected("a transaction", `of at most ${limits.transactionKeys} keys`, this.#touched.size),
    );
  }

  #requireOpen(): void {
    if (!this.#isOver) return;
    throw new UsageError("transaction-over", "expected a transaction to be used while its work runs, and it has ended");
  }
}

const stepOf = ({ map, key, text }: Touched): Step =>
  text === null ? { type: "delete", map, key } : { type: "put", map, key, value: text, isLeased: false };

/** @throws UsageError for what is no map of a member. */
function nameOf(map: unknown): string {
  if (map instanceof LocalMap) return map.name;
  throw new UsageError("bad-option", unexpected("the map of a transaction", "one of member.map()", map));
}
