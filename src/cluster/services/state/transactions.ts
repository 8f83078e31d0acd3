/**
 * Transactions. Reads are recorded with their revisions, and writes are buffered until the end. Everything is then
 * submitted as one command. If nothing that was read has changed, the writes are applied. Otherwise, the work runs
 * again. It also runs again if it throws after inconsistent reads. Keys are read one by one, so the values read may
 * never have existed at the same time.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Comparison, Operation, Step } from "../../../protocols/service/coordination-service/operations.ts";
import { CoordinationError } from "../coordination-error.ts";
import { flag, type Rules, requireOptions, requireRule, work as workRule } from "../known-options.ts";
import { callRules, type IsWanted } from "./calls.ts";
import { limits } from "./limits.ts";
import { LocalMap, requireKey } from "./local-map.ts";
import { retried, type Try } from "./retried.ts";
import type { Service } from "./service.ts";
import type { CallOptions, PutOptions, SharedMap, Transaction } from "./state-api.ts";
import { parsedValue, textOf } from "./value-text.ts";

const WHAT = "the transaction";

type StepOptions = Pick<PutOptions, "leased">;
const putRules: Rules<StepOptions> = { leased: flag };

/** Runs `work` until its reads were consistent, and commits its writes. */
export async function transact<R>(
  service: Service,
  work: (transaction: Transaction) => R | Promise<R>,
  options: CallOptions,
): Promise<R> {
  requireOptions("transaction", options, callRules);
  requireRule("the work of transaction()", work, workRule);
  return retried(service, { what: WHAT, read: "a key that it had read", options }, async (within) => {
    const attempt = new Attempt(service, within);
    let value: R;
    try {
      value = await work(attempt);
    } catch (error) {
      if (await attempt.hasReadOneMoment(error)) throw error;
      return null;
    }
    return (await attempt.commit()) ? { value } : null;
  });
}

/** The value of a key in the transaction, as read, or as written since. */
interface Touched {
  readonly map: string;
  readonly key: string;
  /** The revision at which the key was read, or 0 if the key was absent. Null if it was not read. */
  revision: number | null;
  /** The value's text. Null if the key is absent. */
  text: string | null;
  isLeased: boolean;
  isWritten: boolean;
}

class Attempt implements Transaction {
  readonly #service: Service;
  readonly #within: Try;
  readonly #touched = new Map<string, Touched>();
  /** The error from a failed read. */
  #failure: unknown = null;
  #isOver = false;

  constructor(service: Service, within: Try) {
    this.#service = service;
    this.#within = within;
  }

  async get<T>(map: SharedMap<T>, key: string): Promise<T | undefined> {
    const touched = await this.#read(nameOf(map), key);
    return touched.text === null ? undefined : (parsedValue(touched.text) as T);
  }

  put<T>(map: SharedMap<T>, key: string, value: T, options: StepOptions = {}): void {
    requireOptions("put", options, putRules);
    const { leased = false } = options;
    this.#write(nameOf(map), key, textOf(value, `the value of "${key}"`, limits.valueBytes), leased);
  }

  delete<T>(map: SharedMap<T>, key: string): void {
    this.#write(nameOf(map), key, null, false);
  }

  /** @returns false if a value that was read has changed. In this case, nothing is written */
  async commit(): Promise<boolean> {
    this.#isOver = true;
    this.#requireSize(); // The work may have caught the error for the first key beyond the limit.
    if (this.#touched.size === 0) return true;
    const steps = [...this.#touched.values()].flatMap((touched) => (touched.isWritten ? [stepOf(touched)] : []));
    if (steps.length === 0) return this.#ifUnchanged([]);
    return (await this.#within.write(async () => ((await this.#ifUnchanged(steps)) ? true : null))) !== null;
  }

  /**
   * Determines whether the reads were consistent after the work has thrown. A single read always is.
   * @throws CoordinationError if this cannot be determined, with the work's error as its cause
   */
  async hasReadOneMoment(error: unknown): Promise<boolean> {
    this.#isOver = true;
    const isKnown = this.#unchanged.length < 2 || this.#touched.size > limits.transactionKeys;
    if (isKnown || error === this.#failure || !this.#within.isWanted()) return true;
    try {
      return await this.#ifUnchanged([]);
    } catch (unknown) {
      if (!(unknown instanceof CoordinationError)) throw unknown;
      throw new CoordinationError(unknown.code, unknown.phase, unknown.message, { cause: error });
    }
  }

  get #unchanged(): Comparison[] {
    return [...this.#touched.values()].flatMap(({ map, key, revision }) =>
      revision === null ? [] : [{ type: "revision", map, key, revision }],
    );
  }

  #ifUnchanged(success: Step[]): Promise<boolean> {
    return this.#call(success.length > 0, async (isWanted) => {
      const compare = this.#unchanged;
      const operation: Operation & { type: "transaction" } = { type: "transaction", compare, success, failure: [] };
      return (await this.#service.submit(operation, isWanted)).result.succeeded;
    });
  }

  #call<R>(changes: boolean, answer: (isWanted: IsWanted) => Promise<R>): Promise<R> {
    return this.#service.call({ what: WHAT, changes, ...this.#within.within() }, answer);
  }

  async #read(map: string, key: string): Promise<Touched> {
    this.#requireOpen();
    requireKey(key);
    const known = this.#known(map, key);
    if (known !== undefined) return known;
    const entry = await this.#stored(map, key);
    this.#requireOpen();
    const meanwhile = this.#known(map, key); // The key may have been written during the read.
    if (meanwhile !== undefined) return meanwhile;
    const { revision = 0, value = null } = entry ?? {};
    const touched = { map, key, revision, text: value, isLeased: false, isWritten: false };
    this.#note(touched);
    return touched;
  }

  async #stored(map: string, key: string) {
    try {
      const asked = { type: "get", map, key } as const;
      return await this.#call(false, async (isWanted) => (await this.#service.query(asked, isWanted)).answer.entry);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  #write(map: string, key: string, text: string | null, isLeased: boolean): void {
    this.#requireOpen();
    requireKey(key);
    const known = this.#known(map, key) ?? { map, key, revision: null, text, isLeased, isWritten: true };
    known.text = text;
    known.isLeased = isLeased;
    known.isWritten = true;
    this.#note(known);
  }

  #known(map: string, key: string): Touched | undefined {
    return this.#touched.get(JSON.stringify([map, key]));
  }

  #note(touched: Touched): void {
    this.#touched.set(JSON.stringify([touched.map, touched.key]), touched);
    this.#requireSize();
  }

  #requireSize(): void {
    if (this.#touched.size <= limits.transactionKeys) return;
    throw new UsageError(
      "too-large",
      unexpected("a transaction", `of at most ${limits.transactionKeys} keys`, this.#touched.size),
    );
  }

  #requireOpen(): void {
    if (!this.#isOver && this.#within.isWanted()) return;
    throw new UsageError("transaction-over", "expected a transaction to be used only until its function returns");
  }
}

const stepOf = ({ map, key, text, isLeased }: Touched): Step =>
  text === null ? { type: "delete", map, key } : { type: "put", map, key, value: text, isLeased };

/** @throws UsageError if the value is not one of a member's maps */
function nameOf(map: unknown): string {
  if (map instanceof LocalMap) return map.name;
  throw new UsageError("bad-option", unexpected("the map in a transaction", "a result of member.map()", map));
}
