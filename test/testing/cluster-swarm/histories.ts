/**
 * Records the operations of clients and members and their results in virtual time, and checks that each object is
 * linearizable. All keys used in transactions count as one object.
 */
import { checkLinearizability, type Report } from "../../../src/history/check.ts";
import type { Operation, Value } from "../../../src/history/history.ts";
import { counter, type Model, map, show } from "../../../src/history/model.ts";
import { CoordinationError } from "../../../src/index.ts";
import { transactionStore } from "./transaction-store.ts";

/** Limits on the search, for each kind of object. A search within these limits takes a few seconds. */
const LIMITS = { maxSteps: 2_000_000, maxConfigurations: 1_000_000 };

/**
 * For `map`, each key is an object. For `counter`, each name is one. For `store`, all keys used in transactions form
 * one object.
 */
const models = { map, counter, store: transactionStore } as const satisfies Record<string, () => Model>;
export type Kind = keyof typeof models;

const reads = ["get", "read", "readAll"];

export interface Asked {
  readonly kind: Kind;
  readonly f: string;
  readonly key?: string;
  readonly input: Value;
}

type Open = { -readonly [K in keyof Operation]: Operation[K] };

export class Histories {
  readonly #now: () => number;
  readonly #operations: Readonly<Record<Kind, Set<Open>>> = { map: new Set(), counter: new Set(), store: new Set() };

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the number of successful operations. */
  count(kind: Kind, f?: string): number {
    return [...this.#operations[kind]].filter((each) => each.return !== null && (f === undefined || each.f === f))
      .length;
  }

  /**
   * Records an operation and its result. A request that was never sent is left out. If the outcome is unknown because
   * the caller died or timed out, the request may take effect at any later time, or never.
   * @returns the result of `act`
   */
  async note<T extends Value>(process: string, { kind, f, key, input }: Asked, act: () => Promise<T>): Promise<T> {
    const open: Open = { process, f, key, input, output: undefined, call: this.#now(), return: null, line: null };
    this.#operations[kind].add(open);
    try {
      const output = await act();
      open.output = output;
      open.return = this.#now();
      return output;
    } catch (error) {
      const isNone = error instanceof CoordinationError && error.phase === "never-sent";
      if (isNone || reads.includes(f)) this.#operations[kind].delete(open);
      throw error;
    }
  }

  /** Records a read that happened at an unknown time between two moments, such as the contents of a snapshot. */
  noteRead({ kind, f, key, input }: Asked, output: Value, between: { call: number; return: number }): void {
    this.#operations[kind].add({ process: "snapshot", f, key, input, output, line: null, ...between });
  }

  /**
   * @throws Error naming an operation that cannot be ordered
   * @returns how many objects the checker could not decide within its limits
   */
  judge(): number {
    let unknown = 0;
    for (const [kind, operations] of Object.entries(this.#operations) as [Kind, Set<Open>][]) {
      const told = [...operations].filter(({ f, return: end }) => end !== null || !reads.includes(f));
      const report = checkLinearizability({ operations: told, remarks: [] }, models[kind](), LIMITS);
      if (report.verdict === "violated") throw new Error(whyNot(kind, report));
      unknown += report.findings.filter(({ verdict }) => verdict === "unknown").length;
    }
    return unknown;
  }
}

function whyNot(kind: Kind, { findings }: Report): string {
  const found = findings.find((each) => each.verdict === "violated");
  if (found?.verdict !== "violated") return "";
  const line = (operation: Operation): string =>
    `  ${operation.call.toFixed(1)} to ${operation.return?.toFixed(1) ?? "?"} ms, ${operation.process}: ${show(operation)}`;
  const last = found.longest[0]?.at(-1)?.state;
  return [
    `${kind}${found.key === undefined ? "" : ` ${JSON.stringify(found.key)}`} is not linearizable: this cannot be placed in any order`,
    line(found.culprit),
    `after ${last ?? "nothing"}, among`,
    ...found.window.operations.map(line),
  ].join("\n");
}
