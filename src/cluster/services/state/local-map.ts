/** A map in this process. It converts calls to log operations. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import {
  type Change as LoggedChange,
  type Operation,
  prefixRange,
  type Step,
} from "../../../protocols/service/coordination-service/operations.ts";
import type { Rules } from "../known-options.ts";
import * as may from "../known-options.ts";
import { requireOptions } from "../known-options.ts";
import { fitsBytes } from "../utf8-bytes.ts";
import { callRules, type IsWanted } from "./calls.ts";
import { limits } from "./limits.ts";
import { retried } from "./retried.ts";
import type { Service } from "./service.ts";
import type {
  CallOptions,
  Change,
  Entry,
  PutOptions,
  Range,
  RangeOptions,
  SharedMap,
  WatchOptions,
} from "./state-api.ts";
import { parsedValue, readable, textOf } from "./value-text.ts";
import { Watch } from "./watch.ts";

const keyRule = text(1, limits.keyBytes);
const prefix = text(0, limits.keyBytes);
/** The bound can be longer than any key, so that a range can continue after each key. */
const bound = text(0, limits.boundBytes);
const putRules: Rules<PutOptions> = { ...callRules, leased: may.flag };
const deleteRules: Rules<CallOptions & { ifRevision?: number }> = { ...callRules, ifRevision: may.natural };
const rangeRules: Rules<RangeOptions> = {
  ...callRules,
  from: bound,
  to: bound,
  prefix,
  limit: { wanted: `a whole number from 1 to ${limits.range}`, accepts: isLimit },
};
const watchRules: Rules<WatchOptions> = { after: may.natural, key: keyRule, prefix, signal: may.signal };

/** The object that `map()` returns. */
export class LocalMap<T> implements SharedMap<T> {
  readonly #service: Service;
  constructor(
    readonly name: string,
    service: Service,
  ) {
    this.#service = service;
  }

  async get(key: string, options: CallOptions = {}): Promise<T | undefined> {
    requireOptions("get", options, callRules);
    return (await this.#entry(key, options))?.value;
  }

  async entry(key: string, options: CallOptions = {}): Promise<Entry<T> | undefined> {
    requireOptions("entry", options, callRules);
    return this.#entry(key, options);
  }

  async put(key: string, value: T, options: PutOptions = {}): Promise<number> {
    requireOptions("put", options, putRules);
    return (await this.#put(key, value, null, options)) as number;
  }

  async compareAndSet(key: string, ifRevision: number, value: T, options: PutOptions = {}): Promise<number | null> {
    requireOptions("compareAndSet", options, putRules);
    may.requireRule("ifRevision of compareAndSet()", ifRevision, may.needed(may.natural));
    return this.#put(key, value, ifRevision, options);
  }

  async update(key: string, change: (value: T | undefined) => T, options: PutOptions = {}): Promise<T> {
    requireOptions("update", options, putRules);
    may.requireRule("the change of update()", change, may.work);
    const what = `the update of "${key}" in the map "${this.name}"`;
    const { leased } = options;
    return retried(this.#service, { what, read: "it", options }, async ({ within, write }) => {
      const entry = await this.#entry(key, within());
      const value = change(entry?.value);
      const put = () => this.#put(key, value, entry?.revision ?? 0, { ...within(), leased });
      return (await write(put)) === null ? null : { value };
    });
  }

  async delete(key: string, options: CallOptions & { readonly ifRevision?: number } = {}): Promise<boolean> {
    requireOptions("delete", options, deleteRules);
    requireKey(key);
    const { ifRevision = null } = options;
    return this.#call(`the deletion of "${key}" in`, true, options, async (isWanted) => {
      const deletion = { type: "delete", map: this.name, key } as const;
      if (ifRevision === null) return (await this.#service.submit(deletion, isWanted)).result.previous !== null;
      if (ifRevision === 0) return false;
      return (await this.#ifUnchanged(key, ifRevision, deletion, isWanted)).result.succeeded;
    });
  }

  async range(options: RangeOptions = {}): Promise<Range<T>> {
    requireOptions("range", options, rangeRules);
    const { limit = limits.range } = options;
    const { from, to } = boundsOf(options);
    return this.#call("the range of", false, options, async (isWanted) => {
      const range = { type: "range", map: this.name, from, to, limit } as const;
      const { revision, answer } = await this.#service.query(range, isWanted);
      const entries = answer.entries.flatMap(({ key, value: text, revision: at }) =>
        readable<T>(text).map((value) => ({ key, value, revision: at })),
      );
      return { entries, revision, more: answer.isMore };
    });
  }

  watch(options: WatchOptions = {}): AsyncIterableIterator<Change<T>> {
    requireOptions("watch", options, watchRules);
    const { after = null, key, prefix = "", signal } = options;
    const wants = (changed: string): boolean => (key === undefined || changed === key) && changed.startsWith(prefix);
    return new Watch<Change<T>>(this.#service, { map: this.name, after, wants, signal }, (change) => shown<T>(change));
  }

  #entry(key: string, options: CallOptions): Promise<Entry<T> | undefined> {
    requireKey(key);
    return this.#call(`the read of "${key}" in`, false, options, async (isWanted) => {
      const { entry } = (await this.#service.query({ type: "get", map: this.name, key }, isWanted)).answer;
      if (entry === null) return undefined;
      const value = parsedValue(entry.value, `the value of "${key}" in the map "${this.name}"`) as T;
      return { key, value, revision: entry.revision };
    });
  }

  #put(key: string, value: T, ifRevision: number | null, options: PutOptions): Promise<number | null> {
    requireKey(key);
    const text = textOf(value, `the value of "${key}"`, limits.valueBytes);
    const { leased = false } = options;
    const put = { type: "put", map: this.name, key, value: text, isLeased: leased } as const;
    return this.#call(`the write of "${key}" in`, true, options, (isWanted) =>
      ifRevision === null
        ? this.#service.submit(put, isWanted).then(revisionOf)
        : this.#ifUnchanged(key, ifRevision, put, isWanted).then(({ revision, result }) =>
            result.succeeded ? revision : null,
          ),
    );
  }

  #ifUnchanged(key: string, revision: number, step: Step, isWanted: IsWanted) {
    const unchanged = { type: "revision", map: this.name, key, revision } as const;
    const operation: Operation & { type: "transaction" } = {
      type: "transaction",
      compare: [unchanged],
      success: [step],
      failure: [],
    };
    return this.#service.submit(operation, isWanted);
  }

  #call<R>(
    what: string,
    changes: boolean,
    options: CallOptions,
    answer: (isWanted: IsWanted) => Promise<R>,
  ): Promise<R> {
    const { timeoutMs, signal } = options;
    return this.#service.call({ what: `${what} the map "${this.name}"`, changes, timeoutMs, signal }, answer);
  }
}

/** @throws UsageError */
export function requireKey(key: unknown): asserts key is string {
  if (!keyRule.accepts(key)) throw new UsageError("bad-key", unexpected("the key", keyRule.wanted, key));
}

function text(leastBytes: number, mostBytes: number): may.Rule {
  const accepts = (value: unknown): boolean =>
    typeof value === "string" && value.length >= leastBytes && fitsBytes(value, mostBytes);
  return { wanted: `a string of ${leastBytes} to ${mostBytes} bytes`, accepts };
}

const revisionOf = ({ revision }: { readonly revision: number }): number => revision;

/** Converts a change to the one that a watch reports. Like a range, a watch has no entry whose value is invalid. */
function shown<T>({ key, value: text, revision }: LoggedChange): Change<T> {
  const read = text === null ? [] : readable<T>(text);
  return read.length === 0 ? { type: "delete", key, revision } : { type: "put", key, value: read[0], revision };
}

/**
 * Returns the requested range of keys: `from` inclusive, `to` exclusive. If `to` is null, the range extends to the last
 * key.
 */
function boundsOf({ from = "", to, prefix = "" }: RangeOptions): { from: string; to: string | null } {
  const within = prefixRange(prefix);
  const first = from > within.from ? from : within.from;
  if (to === undefined || (within.to !== null && within.to < to)) return { from: first, to: within.to };
  return { from: first, to };
}

function isLimit(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= limits.range;
}
