/** Is a history linearizable? The verdict, per object and as a whole, with what a person needs to see why. */
import { UsageError, unexpected } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import { type Entries, entriesOf } from "./entries.ts";
import type { History, Operation, Value } from "./history.ts";
import { type Model, requireFitting } from "./model.ts";
import { type Search, search, type Way } from "./search.ts";
import { type Transitions, transitions } from "./transitions.ts";

/** `unknown` is never a pass. */
export type Verdict = "holds" | "violated" | "unknown";

export interface Limits {
  /** How many operations may be tried, all objects together. */
  readonly maxSteps?: number;
  /**
   * How many configurations may be remembered, all objects together: 5 million unless told, at some 60 bytes each, and
   * more where many operations are pending.
   */
  readonly maxConfigurations?: number;
  /** Asked every few thousand steps: a time-out, or a person who has waited long enough. */
  readonly mayGoOn?: () => boolean;
}

/** An operation takes effect, and the object is in this state. */
export interface Effect {
  readonly operation: Operation;
  readonly state: string;
}

interface Checked {
  readonly key: Value | undefined;
  /** By their calls. */
  readonly operations: readonly Operation[];
}

export interface Holds extends Checked {
  readonly verdict: "holds";
  /** Every operation that returned, and those pending ones that somebody noticed. */
  readonly linearization: readonly Effect[];
}

export interface Violated extends Checked {
  readonly verdict: "violated";
  /**
   * The operation that has no place. Up to its return the history has no linearization; up to just before, it has (what was
   * under way then counts with the result that it had later). So this is the earliest moment at which something had gone
   * wrong, whichever way the search took.
   */
  readonly culprit: Operation;
  /** How far one can come: linearizations of all that returned before the culprit, one per state, the longest first. */
  readonly longest: readonly (readonly Effect[])[];
  /** Called before the culprit returned and without a place in the longest of these, the culprit first. */
  readonly unplaced: readonly Operation[];
  /** Where to look: from the call of the first operation that the culprit meets or reads after, to the culprit's return. */
  readonly window: { readonly from: number; readonly to: number; readonly operations: readonly Operation[] };
}

export interface Unknown extends Checked {
  readonly verdict: "unknown";
  /** `settled`: another object is violated, so the verdict is known. */
  readonly why: "steps" | "memory" | "stopped" | "settled";
  /** How many of the operations that returned have been placed, at most. */
  readonly placed: number;
  readonly returned: number;
  readonly longest: readonly (readonly Effect[])[];
}

export type Finding = Holds | Violated | Unknown;

export interface Report {
  readonly verdict: Verdict;
  readonly model: string;
  /** One per object, by key. */
  readonly findings: readonly Finding[];
  readonly operations: number;
  readonly steps: number;
  readonly configurations: number;
}

/** One object under examination. */
interface Case extends Checked {
  readonly entries: Entries;
  readonly transitions: Transitions;
  readonly search: Search;
}

const SLICE = 4_096;

/**
 * Checks each object by itself. They take turns with growing shares, so that a hard one does not keep an easy one from
 * showing its violation; once there is a violation, those that are still open are left `unknown`.
 * @throws UsageError for operations that the model does not take.
 */
export function checkLinearizability(history: History, model: Model, limits: Limits = {}): Report {
  requireLimits(limits);
  requireFitting(history.operations, model);
  const steps = transitions(model);
  const cases = objectsOf(history.operations).map((object): Case => {
    const entries = entriesOf(object.operations, model, steps);
    return { ...object, entries, transitions: steps, search: search(entries, steps) };
  });
  const why = examine(cases, limits);
  const findings = cases.map((one) => finding(one, why));
  return {
    verdict: overall(findings),
    model: model.name,
    findings,
    operations: history.operations.length,
    steps: sum(cases, (one) => one.search.steps),
    configurations: sum(cases, (one) => one.search.remembered),
  };
}

function requireLimits({ maxSteps, maxConfigurations }: Limits): void {
  for (const [name, limit] of Object.entries({ maxSteps, maxConfigurations })) {
    if (limit !== undefined && !(limit > 0)) throw new UsageError("bad-limit", unexpected(name, "a number > 0", limit));
  }
}

/** Operations by key, in the order of keys as a person would list them. */
function objectsOf(operations: readonly Operation[]): Checked[] {
  const objects = new Map<string, { key: Value | undefined; operations: Operation[] }>();
  for (const operation of operations) {
    const { key } = operation;
    const name = typeof key === "string" ? `"${key}` : canonical(key);
    const object = objects.get(name) ?? { key, operations: [] };
    if (object.operations.push(operation) === 1) objects.set(name, object);
  }
  return [...objects].sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1)).map(([, object]) => object);
}

/** Runs the searches. Says why it stopped before all were through. */
function examine(cases: readonly Case[], limits: Limits): Unknown["why"] {
  const { maxSteps = Number.POSITIVE_INFINITY, maxConfigurations = 5_000_000, mayGoOn = () => true } = limits;
  let left = maxSteps;
  let room = maxConfigurations;
  let undecided = [...cases];
  for (let share = SLICE; undecided.length > 0; share *= 4) {
    let isViolated = false;
    const open: Case[] = [];
    for (const one of undecided) {
      let outcome = one.search.run(0);
      for (let spent = 0; outcome === "open" && spent < share; spent += SLICE) {
        if (!mayGoOn()) return "stopped";
        if (left <= 0) return "steps";
        if (room <= 0) return "memory";
        const [steps, remembered] = [one.search.steps, one.search.remembered];
        outcome = one.search.run(Math.min(SLICE, left, room));
        left -= one.search.steps - steps;
        room -= one.search.remembered - remembered;
      }
      if (outcome === "open") open.push(one);
      else if (outcome === "impossible") isViolated = true;
    }
    if (isViolated) return "settled";
    undecided = open;
  }
  return "settled";
}

function finding(one: Case, why: Unknown["why"]): Finding {
  const outcome = one.search.run(0);
  const { key, operations } = one;
  if (outcome === "placed") {
    return { verdict: "holds", key, operations, linearization: effects(one.search.way(), one) };
  }
  return outcome === "impossible" ? violation(one) : soFar(one, why);
}

function soFar(one: Case, why: Unknown["why"]): Unknown {
  const { key, operations, entries } = one;
  const ways = [one.search.way(), ...one.search.deadEnds()];
  const placed = (way: Way): number => way.order.reduce((sum, op) => sum + (op < entries.returned ? 1 : 0), 0);
  ways.sort((a, b) => placed(b) - placed(a));
  return {
    verdict: "unknown",
    why,
    key,
    operations,
    placed: Math.max(...ways.map(placed)),
    returned: entries.returned,
    longest: ways.slice(0, 1).map((way) => effects(way, one)),
  };
}

function violation(one: Case): Violated {
  const { key, operations, entries } = one;
  const ends = one.search.deadEnds();
  const number = entries.returns[ends[0]?.barrier ?? 0] ?? 0;
  const culprit = entries.operations[number] as Operation;
  const longest = ends.map((end) => effects(end, one));
  const to = culprit.return ?? Number.POSITIVE_INFINITY;
  const placed = new Set(longest[0]?.map(({ operation }) => operation));
  const isUnplaced = (operation: Operation): boolean => operation.call <= to && !placed.has(operation);
  const unplaced = [culprit, ...operations.filter((operation) => operation !== culprit && isUnplaced(operation))];
  return {
    verdict: "violated",
    key,
    operations,
    culprit,
    longest,
    unplaced,
    window: windowOf(culprit, longest, operations),
  };
}

/** What overlaps the culprit, and what gave the states in which the longest linearizations ended. */
function windowOf(
  culprit: Operation,
  longest: Violated["longest"],
  operations: readonly Operation[],
): Violated["window"] {
  const to = culprit.return ?? Number.POSITIVE_INFINITY;
  const causes = longest.flatMap((effects) => effects[lastChange(effects)]?.operation ?? []);
  const meets = ({ call, return: end }: Operation): boolean => call <= to && (end === null || end >= culprit.call);
  const inside = operations.filter((operation) => meets(operation) || causes.includes(operation));
  // A pending operation of long ago may matter, but the window need not begin there.
  const starts = [culprit, ...causes, ...inside.filter((operation) => operation.return !== null)];
  const from = starts.reduce((earliest, { call }) => Math.min(earliest, call), culprit.call);
  return { from, to, operations: inside };
}

/** Where the state became what it is at the end. */
function lastChange(effects: readonly Effect[]): number {
  const state = effects.at(-1)?.state;
  return effects.findLastIndex((effect) => effect.state !== state) + 1;
}

const effects = ({ order, states }: Way, { entries, transitions: steps }: Case): Effect[] =>
  Array.from(order, (op, at) => ({
    operation: entries.operations[op] as Operation,
    state: steps.show(states[at] as number),
  }));

function overall(findings: readonly Finding[]): Verdict {
  if (findings.some(({ verdict }) => verdict === "violated")) return "violated";
  return findings.every(({ verdict }) => verdict === "holds") ? "holds" : "unknown";
}

const sum = <T>(items: readonly T[], size: (item: T) => number): number =>
  items.reduce((total, item) => total + size(item), 0);
