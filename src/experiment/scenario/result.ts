/** The result of a run: its outcome, a verdict on each property, and each expectation with the actual value. */

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
  /**
   * The number of protocol messages sent, including messages to crashed nodes but not messages from a node to itself.
   */
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  /** The number of datagrams needed if one datagram can reach all other nodes, as with IP multicast. */
  readonly datagrams: number;
  /** The number of messages lost in transit or because the receiver was down. */
  readonly lost: number;
  /** The outcome in terms of the family, such as the leader or the delivered messages. */
  readonly outcome: Outcome;
  /** The verdict on each of the protocol's properties. */
  readonly properties: readonly PropertyVerdict[];
  /** The ids of the nodes that were alive at the end, in ascending order. */
  readonly nodesAlive: readonly NodeId[];
  /** Whether the run ended because it was idle, rather than because it was cut off. */
  readonly isOver: boolean;
  /** The scenario's expectations, with the actual values. */
  readonly expectations: readonly Judged[];
}

/** Whether a property holds in a run. */
export interface PropertyVerdict {
  /** The name of the property. */
  readonly name: string;
  /** The property's claim, as a sentence. */
  readonly claim: string;
  /**
   * The verdict, which applies only to this run. A liveness property is violated if a node has waited for at least 10 s
   * and for at least half of the run. `unknown`: the awaited event may still happen, or the property was not checked at
   * the relevant moments.
   */
  readonly verdict: "holds" | "violated" | "unknown";
  /** Why the verdict is `unknown`. If the property holds in a run that was cut off, `so far`. Otherwise empty. */
  readonly why: string;
  /** The virtual time of the violation, in milliseconds. Null if the property is not violated. */
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

/**
 * Returns the verdict on each property.
 * @param watched whether properties were checked after every step, rather than only at the end
 */
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

/** A duration far longer than any delay, timeout or back-off in the registry's protocols. */
const LONG_MS = 10_000;

/**
 * Whether a node has waited so long that the property counts as violated. Without this rule, endless timers would hide
 * every violation.
 */
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
    return isLong(waiting.since, now) ? "" : `node ${waiting.node} was still waiting when the run was cut off`;
  }
  if (when === "sometimes") return seen.has(name) ? "" : "not seen in this run";
  if (when === "eventually") return "";
  if (!watched) return "checked only at the end";
  return when === "quiescent" && !seen.has(name) ? "the run was never idle" : "";
}

/** A scenario's expectation and the actual value. */
export interface Judged {
  /** The field of the scenario, such as `leader`, `messages.byType.answer` or `steps[2].when`. */
  readonly what: string;
  /** The value that the scenario expects. */
  readonly expected: unknown;
  /** The value in the run. */
  readonly actual: unknown;
  /** Whether the two are equal. */
  readonly passed: boolean;
}

/** The data about a run that expectations can refer to. */
export interface Facts {
  readonly outcome: Outcome;
  /** The leader that each alive node follows. */
  readonly leaders: Readonly<Record<NodeId, NodeId | null>>;
  readonly alive: readonly NodeId[];
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  readonly datagrams: number;
  readonly violated: readonly string[];
  /** The time of the last event. Null if the run was cut off before it became idle. */
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

/**
 * Compares one expected value with every alive node, or one value for each listed node. A node without a value has
 * null.
 */
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

/** Returns a single value if all nodes agree. Otherwise, returns the value of each node. */
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
