/**
 * The required fields of the header and of each kind of entry. Additional fields are allowed, because a later version
 * may add some.
 */
import { unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { LossReason, TraceEntry, TraceHeader } from "./entry.ts";

interface Field {
  readonly expected: string;
  readonly holds: (value: unknown) => boolean;
}
type Fields = Readonly<Record<string, Field>>;

const isNatural = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isNaturalOrAbsent = (value: unknown): boolean => value === undefined || isNatural(value);
const isText = (value: unknown): boolean => typeof value === "string";
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const orNull = ({ expected, holds }: Field): Field => ({
  expected: `${expected}, or null`,
  holds: (value) => value === null || holds(value),
});
const oneOf = (...values: readonly unknown[]): Field => ({
  expected: values.length === 1 ? JSON.stringify(values[0]) : `one of ${values.join(", ")}`,
  holds: (value) => values.includes(value),
});

const finite: Field = { expected: "a finite number", holds: Number.isFinite };
const natural: Field = { expected: "a natural number", holds: isNatural };
const words: Field = { expected: "text", holds: isText };
const anything: Field = { expected: "present", holds: (value) => value !== undefined };
const tagged: Field = {
  expected: "an object with a type",
  holds: (value) => isObject(value) && isText(value.type),
};
const clock: Field = {
  expected: "counts by node",
  holds: (value) => isObject(value) && Object.entries(value).every(([node, count]) => isId(node) && isNatural(count)),
};
const isId = (key: string): boolean => /^\d{1,15}$/.test(key);
const ids: Field = {
  expected: "a list of different natural numbers",
  holds: (value) => Array.isArray(value) && value.every(isNatural) && new Set(value).size === value.length,
};

const headerFields: { readonly [K in keyof Required<TraceHeader>]: Field } = {
  kind: oneOf("trace"),
  version: oneOf(1),
  madeBy: oneOf("simulator", "checker", "cluster"),
  protocol: words,
  form: oneOf("model", "node"),
  variant: orNull(words),
  options: anything,
  nodes: ids,
  seed: orNull(finite),
  byzantine: {
    expected: "an object that maps nodes to behaviors, or absent",
    holds: (value) => value === undefined || (isObject(value) && Object.keys(value).every(isId)),
  },
  states: {
    expected: "an object that maps nodes to the differing parts of their states, or absent",
    holds: (value) =>
      value === undefined ||
      (isObject(value) && Object.keys(value).every(isId) && Object.values(value).every(isObject)),
  },
  violation: orNull({ expected: "an object", holds: isObject }),
};

const violationFields: Fields = { property: words, claim: words, loopFrom: orNull(natural) };

/** The reasons for losses. This is a record so that the compiler reports a missing reason. */
const lossReasons: Readonly<Record<LossReason, true>> = {
  cut: true,
  dropped: true,
  overflow: true,
  crashed: true,
  down: true,
};

const texts: Field = {
  expected: "a list of strings, or absent",
  holds: (value) => value === undefined || (Array.isArray(value) && value.every(isText)),
};

const logView: Field = {
  expected: "an object such as { decided: 3, last: 4 }, or absent",
  holds: (value) => value === undefined || (isObject(value) && isPlace(value.decided) && isPlace(value.last)),
};
const isPlace = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const certificates: Field = {
  expected: 'a list of objects such as { of: "x", signed: [0, 2], needed: 3 }, or absent',
  holds: (value) => value === undefined || (Array.isArray(value) && value.every(isCertificate)),
};
const isCertificate = (value: unknown): boolean =>
  isObject(value) &&
  isText(value.of) &&
  Array.isArray(value.signed) &&
  value.signed.every(isNatural) &&
  isNatural(value.needed);

const viewFields: Fields = { role: words, held: texts, log: logView, certificates };

const journal: Field = {
  expected: "a list of records, or absent",
  holds: (value) => value === undefined || Array.isArray(value),
};

/** Returns the fields other than `at`, `node` and `kind`. `other` checks the id of another node. */
function fieldsOf(other: Field): Readonly<Record<TraceEntry["kind"], Fields>> {
  return {
    start: { journal },
    crash: { journal },
    pause: {},
    resume: {},
    send: { id: words, to: other, message: tagged },
    receive: { id: words, from: other, message: tagged },
    lost: { id: words, to: other, why: oneOf(...Object.keys(lossReasons)) },
    timeout: { timer: words },
    command: { command: tagged },
    event: { event: tagged, request: { expected: "a natural number, or absent", holds: isNaturalOrAbsent } },
    choice: { label: words, option: anything },
    fault: { what: words },
    gap: { dropped: natural },
    view: { view: { expected: "an object", holds: isObject } },
  };
}

/** Returns the problem with a file's first line, in one sentence that names the field. Null if there is none. */
export function headerProblem(value: unknown): string | null {
  if (!isObject(value) || value.kind !== "trace")
    return unexpected("the header of a trace", 'an object with kind "trace"', value);
  const problem = firstProblem(headerFields, value, "");
  if (problem !== null) return problem;
  return isObject(value.violation) ? firstProblem(violationFields, value.violation, "violation.") : null;
}

/**
 * Returns a function that checks an entry of a trace of these nodes. The function returns the problem in one sentence
 * that names the field, or null if there is none.
 */
export function entryProblems(nodes: readonly NodeId[]): (value: unknown) => string | null {
  const node = oneOf(...nodes);
  const kinds = fieldsOf(node);
  const shared: Fields = { at: finite, node, kind: oneOf(...Object.keys(kinds)) };
  return (value) => {
    if (!isObject(value)) return unexpected("the entry", "an object", value);
    return (
      firstProblem(shared, value, "") ??
      firstProblem(kinds[value.kind as TraceEntry["kind"]], value, "") ??
      (value.clock === undefined ? null : firstProblem({ clock }, value, "")) ??
      (isObject(value.view) ? firstProblem(viewFields, value.view, "view.") : null)
    );
  };
}

function firstProblem(fields: Fields, value: Record<string, unknown>, path: string): string | null {
  for (const [name, { expected, holds }] of Object.entries(fields))
    if (!holds(value[name])) return unexpected(`${path}${name}`, expected, value[name]);
  return null;
}
