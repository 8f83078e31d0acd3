/** A transaction as JSON: comparisons, the steps to run if all comparisons are true, and the steps to run otherwise. */
import { z } from "zod";
import { UsageError } from "../../core/errors.ts";
import type { Operation } from "../../protocols/service/coordination-service/operations.ts";
import { firstProblem } from "../first-problem.ts";
import { requireName } from "../services/instance-name.ts";
import { limits } from "../services/state/limits.ts";
import { requireKey } from "../services/state/local-map.ts";
import type { Service } from "../services/state/service.ts";
import { parsedValue, textOf } from "../services/state/value-text.ts";
import { timeoutMs } from "./request-timeout.ts";

const text = z.string("a string");
/** A value parsed from JSON. */
export const jsonValue = z.unknown().refine((value) => value !== undefined, "JSON data");
const revision = z.number("a whole number of 0 or more").int("a whole number").min(0, "a whole number of 0 or more");

const comparison = z.union(
  [
    z.strictObject({ map: text, key: text, revision: revision.describe("0: the key is absent") }),
    z.strictObject({ map: text, key: text, value: jsonValue }),
  ],
  "a comparison: map, key, and a value or a revision",
);
const put = z.strictObject({ put: z.strictObject({ map: text, key: text, value: jsonValue }) });
const remove = z.strictObject({ delete: z.strictObject({ map: text, key: text }) });
const get = z.strictObject({ get: z.strictObject({ map: text, key: text }) });
const steps = z
  .array(z.union([put, remove, get], "a step: put, delete or get"), "a list")
  .max(limits.transactionKeys, `a list of at most ${limits.transactionKeys}`)
  .default([]);

/** The shape of a transaction. */
export const transactionShape = z.strictObject(
  {
    if: z
      .array(comparison, "a list")
      .max(limits.transactionKeys, `a list of at most ${limits.transactionKeys}`)
      .default([]),
    // biome-ignore lint/suspicious/noThenProperty: the steps if the comparisons hold
    then: steps,
    else: steps,
    timeoutMs,
  },
  "an object",
);

export type TransactionRequest = z.infer<typeof transactionShape>;
type Step = TransactionRequest["then"][number];

export interface Performed {
  readonly succeeded: boolean;
  readonly revision: number;
  /** One result for each executed step. If the step read a value, its result has that value. */
  readonly results: readonly { readonly key: string; readonly value?: unknown; readonly revision?: number }[];
}

/** @throws UsageError that names the field */
export function readTransaction(given: unknown): TransactionRequest {
  const read = transactionShape.safeParse(given);
  if (read.success) return read.data;
  throw new UsageError("bad-request", firstProblem(read.error, given, "the transaction"));
}

/** @throws UsageError if a name or key is invalid, and the errors of shared-state calls */
export async function performed(
  service: Pick<Service, "call" | "submit">,
  request: TransactionRequest & { readonly signal?: AbortSignal },
): Promise<Performed> {
  const { if: compare, then, else: otherwise, timeoutMs: within, signal } = request;
  const operation: Operation & { type: "transaction" } = {
    type: "transaction",
    compare: compare.map((each) => {
      const { map, key } = placeOf(each);
      if ("revision" in each) return { type: "revision", map, key, revision: each.revision };
      return { type: "value", map, key, value: textOf(each.value, `the value of "${key}"`, limits.valueBytes) };
    }),
    success: then.map(stepOf),
    failure: otherwise.map(stepOf),
  };
  const { revision: at, result } = await service.call(
    { what: "the transaction", changes: true, signal, ...(within === undefined ? {} : { timeoutMs: within }) },
    (isWanted) => service.submit(operation, isWanted),
  );
  const done = result.succeeded ? then : otherwise;
  const results = result.results.map((each, index) => {
    const { key } = partOf(done[index] as Step);
    if (each.type !== "found" || each.entry === null) return { key };
    return { key, value: parsedValue(each.entry.value), revision: each.entry.revision };
  });
  return { succeeded: result.succeeded, revision: at, results };
}

const partOf = (step: Step): { map: string; key: string } =>
  "put" in step ? step.put : "delete" in step ? step.delete : step.get;

/** @throws UsageError */
function placeOf({ map, key }: { map: string; key: string }): { map: string; key: string } {
  requireKey(key);
  return { map: requireName(map), key };
}

function stepOf(step: Step) {
  const { map, key } = placeOf(partOf(step));
  if ("get" in step) return { type: "get", map, key } as const;
  if ("delete" in step) return { type: "delete", map, key } as const;
  const stored = textOf(step.put.value, `the value of "${key}"`, limits.valueBytes);
  return { type: "put", map, key, value: stored, isLeased: false } as const;
}
