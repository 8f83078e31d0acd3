/** What a scenario expects of its run, beside what came of it. */
import { equal } from "../../core/plain.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Entry, Outcome } from "../../protocols/index.ts";
import { isProperty } from "./names.ts";
import type { Expectation } from "./schema.ts";

export interface Judged {
  /** The field of the scenario, such as `leader`, `messages.byType.answer` or `steps[2].when`. */
  readonly what: string;
  readonly expected: unknown;
  readonly actual: unknown;
  readonly passed: boolean;
}

/** What an expectation may speak of. */
export interface Facts {
  readonly outcome: Outcome;
  /** Who leads in the eyes of each alive node. */
  readonly leaders: Readonly<Record<NodeId, NodeId | null>>;
  readonly alive: readonly NodeId[];
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  readonly datagrams: number;
  readonly violated: readonly string[];
  /** When the last thing happened; null if something was left to happen. */
  readonly restedAtMs: number | null;
}

export function judge(expect: Expectation, facts: Facts): Judged[] {
  return [
    ...perNode("leader", expect.leader, { ...facts, outcome: { leader: facts.leaders } }),
    ...inOrder("entries", expect.entries, facts.outcome, ({ enteredAt }) => enteredAt),
    ...waiting(expect.waiting, facts.outcome),
    ...perNode("delivered", expect.delivered, facts),
    ...perNode("decided", expect.decided, facts),
    ...perNode("suspected", expect.suspected, facts),
    ...counts(expect.messages, facts),
    ...(expect.datagrams === undefined ? [] : [judged("datagrams", expect.datagrams, facts.datagrams)]),
    violations(expect.violated, facts.violated),
    ...rest(expect.restsByMs, facts.restedAtMs),
  ];
}

const judged = (what: string, expected: unknown, actual: unknown): Judged => ({
  what,
  expected,
  actual,
  passed: equal(expected, actual),
});

/** Either one value for every alive node, or some nodes with a value each. Who has none has null. */
function perNode(word: string, expected: unknown, { outcome, alive }: Facts): Judged[] {
  if (expected === undefined) return [];
  const known = (outcome as Readonly<Record<string, Readonly<Record<NodeId, unknown>>>>)[word] ?? {};
  const isRecord = typeof expected === "object" && expected !== null && !Array.isArray(expected);
  const wanted: Readonly<Record<string, unknown>> = isRecord
    ? (expected as Record<string, unknown>)
    : Object.fromEntries(alive.map((node) => [node, expected]));
  const actual = Object.fromEntries(
    Object.keys(wanted).map((node) => [node, sorted(known[Number(node)] ?? null, word)]),
  );
  return [{ what: word, expected, actual: isRecord ? actual : together(actual), passed: equal(wanted, actual) }];
}

const sorted = (value: unknown, word: string): unknown =>
  word === "suspected" && Array.isArray(value) ? value.toSorted((a, b) => a - b) : value;

/** One value where all agree. */
function together(byNode: Readonly<Record<string, unknown>>): unknown {
  const [one, ...others] = Object.values(byNode);
  return one !== undefined && others.every((other) => equal(one, other)) ? one : byNode;
}

function entriesOf(outcome: Outcome): readonly Entry[] {
  return "entries" in outcome ? outcome.entries : [];
}

function inOrder(
  what: string,
  expected: readonly NodeId[] | undefined,
  outcome: Outcome,
  at: (entry: Entry) => number | null,
): Judged[] {
  if (expected === undefined) return [];
  const happened = entriesOf(outcome).filter((entry) => at(entry) !== null);
  const actual = happened.toSorted((a, b) => Number(at(a)) - Number(at(b))).map(({ node }) => node);
  return [judged(what, expected, actual)];
}

function waiting(expected: readonly NodeId[] | undefined, outcome: Outcome): Judged[] {
  if (expected === undefined) return [];
  const actual = entriesOf(outcome).flatMap(({ node, enteredAt }) => (enteredAt === null ? [node] : []));
  return [
    judged(
      "waiting",
      expected,
      actual.toSorted((a, b) => a - b),
    ),
  ];
}

function counts(expected: Expectation["messages"], { messages }: Facts): Judged[] {
  if (expected === undefined) return [];
  const { total, byType = {} } = typeof expected === "number" ? { total: expected } : expected;
  return [
    ...(total === undefined ? [] : [judged("messages", total, messages.total)]),
    ...Object.entries(byType).map(([type, count]) =>
      judged(`messages.byType.${type}`, count, messages.byType[type] ?? 0),
    ),
  ];
}

function violations(expected: readonly string[], actual: readonly string[]): Judged {
  const passed =
    actual.every((property) => expected.some((word) => isProperty(property, word))) &&
    expected.every((word) => actual.some((property) => isProperty(property, word)));
  return { what: "violated", expected, actual, passed };
}

function rest(byMs: number | undefined, restedAtMs: number | null): Judged[] {
  if (byMs === undefined) return [];
  return [{ what: "restsByMs", expected: byMs, actual: restedAtMs, passed: restedAtMs !== null && restedAtMs <= byMs }];
}
