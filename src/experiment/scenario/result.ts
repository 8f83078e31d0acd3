/** What a run came to: its outcome, what it says of each property, and which expectations it met. */

import { equal } from "../../core/plain.ts";
import type { NodeId, Property, Vocabulary } from "../../core/protocol.ts";
import type { AnyProtocol, Emitted, Entry, Family, Outcome } from "../../protocols/index.ts";
import type { Simulation, Violation } from "../../sim/simulation.ts";
import { isProperty } from "./names.ts";
import type { Expectation, Scenario } from "./schema.ts";

export interface Result {
  /** When the last thing happened, in virtual milliseconds. */
  readonly timeMs: number;
  /** Protocol messages; self-sends not counted, messages to crashed nodes counted. */
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  /** As how many datagrams they went out if one reaches all others at once. */
  readonly datagrams: number;
  /** How many of them were lost: on the way, or since their receiver was down. */
  readonly lost: number;
  readonly outcome: Outcome;
  readonly properties: readonly PropertyVerdict[];
  readonly nodesAlive: readonly NodeId[];
  /** Nothing was left to happen. */
  readonly isOver: boolean;
  readonly expectations: readonly Judged[];
}

export interface PropertyVerdict {
  readonly name: string;
  readonly claim: string;
  /**
   * Of this run. What leads to something is violated if a node has waited for it for more than half of the run, and for
   * 10 s at least. `unknown`: what is claimed may still come, or nobody looked when it would have counted.
   */
  readonly verdict: "holds" | "violated" | "unknown";
  /** Why it is not known; `so far` of what holds in a run that was cut off; empty otherwise. */
  readonly why: string;
  /** When the violation was seen. */
  readonly at: number | null;
}

interface Ended {
  readonly sim: Simulation<Vocabulary>;
  readonly scenario: Scenario;
  readonly protocol: AnyProtocol;
  readonly family: Family;
  /** When the last thing happened. */
  readonly timeMs: number;
  readonly events: readonly Emitted[];
  /** The step that was not taken, if there is one. */
  readonly missed: readonly Judged[];
  /** Whether properties were looked at all the time, or only in the end. */
  readonly watched: boolean;
}

export function resultOf({ sim, scenario, protocol, family, timeMs, events, missed, watched }: Ended): Result {
  const { alive } = sim.world;
  const view = (node: NodeId) => protocol.view(sim.world.state(node), node);
  const outcome = family.outcome({ alive, view, events });
  const properties = verdictsOf(sim, protocol.properties, watched);
  const { messages, datagrams } = sim;
  const violated = properties.flatMap(({ name, verdict }) => (verdict === "violated" ? [name] : []));
  const leaders = Object.fromEntries(alive.map((node) => [node, view(node).leader ?? null]));
  const { isOver } = sim;
  const restedAtMs = isOver ? timeMs : null;
  const facts = { outcome, leaders, alive, messages, datagrams, violated, restedAtMs };
  return {
    timeMs,
    messages,
    datagrams,
    lost: sim.lost,
    outcome,
    properties,
    nodesAlive: alive,
    isOver,
    expectations: [...missed, ...judge(scenario.expect, facts)],
  };
}

/** @param watched whether properties were looked at all the time, or only in the end */
export function verdictsOf(
  sim: Simulation<Vocabulary>,
  properties: readonly Property<Vocabulary>[],
  watched: boolean,
): PropertyVerdict[] {
  const violations = new Map(sim.verdict().map((violation) => [violation.property, violation]));
  const { isOver, seen, now } = sim;
  return properties.map((property) => {
    const { name, claim } = property;
    const violation = violations.get(name);
    const why = whyUnknown(property, violation, { isOver, watched, seen, now });
    if (why !== "") return { name, claim, verdict: "unknown", why, at: null };
    if (violation !== undefined) return { name, claim, verdict: "violated", why, at: violation.at };
    return { name, claim, verdict: "holds", why: isOver || property.when === "sometimes" ? "" : "so far", at: null };
  });
}

interface Seen {
  readonly isOver: boolean;
  readonly watched: boolean;
  readonly seen: ReadonlySet<string>;
  readonly now: number;
}

/** Far above every delay, time-out and back-off of the registry's protocols. */
const LONG_MS = 10_000;

/** Whether a promise is broken rather than on its way: timers that run for ever would hide it otherwise. */
const isLong = (since: number, now: number): boolean => now - since >= Math.max(LONG_MS, now / 2);

function whyUnknown(
  { name, when }: Property<Vocabulary>,
  violation: Violation | undefined,
  { isOver, watched, seen, now }: Seen,
): string {
  if (violation !== undefined) {
    // What is owed when the run is cut off may still come.
    if (isOver || when === "always" || when === "quiescent") return "";
    const { waiting } = violation;
    if (waiting === undefined) return "not true when the run was cut off";
    return isLong(waiting.since, now) ? "" : `node ${waiting.node} still waited when the run was cut off`;
  }
  if (when === "sometimes") return seen.has(name) ? "" : "not seen in this run";
  if (when === "eventually") return "";
  if (!watched) return "checked only at the end";
  return when === "quiescent" && !seen.has(name) ? "the run was never idle" : "";
}

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

function judge(expect: Expectation, facts: Facts): Judged[] {
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
