/** The result of a run: its outcome, a verdict for each property, and the expectations with their actual values. */

import { equal } from "../../core/plain.ts";
import type { NodeId, Property, Vocabulary } from "../../core/protocol.ts";
import type { AnyProtocol, Emitted, Entry, Family, Outcome } from "../../protocols/index.ts";
import type { Simulation, Violation } from "../../sim/simulation.ts";
import { isProperty } from "./names.ts";
import type { Expectation, Scenario } from "./schema.ts";

/** The result of a simulated run. */
export interface Result {
  /** The time of the last event, in virtual milliseconds. */
  readonly timeMs: number;
  /** The number of protocol messages. Messages to crashed nodes count; messages to oneself do not. */
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  /** The number of datagrams, if one datagram can reach all other nodes, as with IP multicast. */
  readonly datagrams: number;
  /** The number of messages lost in transit or because the receiver was down. */
  readonly lost: number;
  /** The outcome in the terms of the family, such as the leader or the delivered messages. */
  readonly outcome: Outcome;
  readonly properties: readonly PropertyVerdict[];
  readonly nodesAlive: readonly NodeId[];
  /** Whether the run ended because it was idle, rather than being cut off. */
  readonly isOver: boolean;
  readonly expectations: readonly Judged[];
}

/** Whether a property holds in a run. */
export interface PropertyVerdict {
  readonly name: string;
  readonly claim: string;
  /**
   * The verdict for this run only. A liveness property is violated if a node has waited for at least 10 s and half of the run.
   * `unknown`: the promised event may still happen, or the property was not checked at the relevant moments.
   */
  readonly verdict: "holds" | "violated" | "unknown";
  /** Why the verdict is `unknown`; `so far` if the property holds in a run that was cut off; empty otherwise. */
  readonly why: string;
  /** The virtual time of the violation, in milliseconds. */
  readonly at: number | null;
}

interface Ended {
  readonly sim: Simulation<Vocabulary>;
  readonly scenario: Scenario;
  readonly protocol: AnyProtocol;
  readonly family: Family;
  /** The time of the last event. */
  readonly timeMs: number;
  readonly events: readonly Emitted[];
  /** The first step that was not taken, if any. */
  readonly missed: readonly Judged[];
  /** Whether properties were checked after every step, rather than only at the end. */
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

/** @param watched whether properties were checked after every step, rather than only at the end */
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

/** Far above every delay, timeout and back-off of the registry's protocols. */
const LONG_MS = 10_000;

/** Whether a node has waited so long that the property is violated. Otherwise endless timers would hide every violation. */
const isLong = (since: number, now: number): boolean => now - since >= Math.max(LONG_MS, now / 2);

function whyUnknown(
  { name, when }: Property<Vocabulary>,
  violation: Violation | undefined,
  { isOver, watched, seen, now }: Seen,
): string {
  if (violation !== undefined) {
    // The awaited event may still happen after the cut-off.
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

/** An expectation of a scenario and the actual value. */
export interface Judged {
  /** The field of the scenario, such as `leader`, `messages.byType.answer` or `steps[2].when`. */
  readonly what: string;
  readonly expected: unknown;
  readonly actual: unknown;
  readonly passed: boolean;
}

/** The facts of a run that an expectation can refer to. */
export interface Facts {
  readonly outcome: Outcome;
  /** The leader that each alive node knows. */
  readonly leaders: Readonly<Record<NodeId, NodeId | null>>;
  readonly alive: readonly NodeId[];
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  readonly datagrams: number;
  readonly violated: readonly string[];
  /** The time of the last event. Null if the run was cut off before it was idle. */
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

/** Judges one value for every alive node, or a value for each listed node. A node without a value has null. */
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

/** One value if all nodes agree. */
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
