/**
 * Checks whether a history is linearizable. The result is a verdict on each object and on the whole history, with
 * evidence that a person can follow.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import { type Entries, entriesOf } from "./entries.ts";
import type { History, Operation, Value } from "./history.ts";
import { type Model, requireFitting } from "./model.ts";
import { type Search, search, type Way } from "./search.ts";
import { type Transitions, transitions } from "./transitions.ts";

/** The verdict of a check. Never treat `unknown` as a pass. */
export type Verdict = "holds" | "violated" | "unknown";

/** Limits on a check. */
export interface Limits {
  /** The maximum number of operations to try, for all objects combined. */
  readonly maxSteps?: number;
  /**
   * The maximum number of remembered configurations, for all objects combined. Default: 5 million. Each takes about 60
   * bytes, or more if there are many pending operations.
   */
  readonly maxConfigurations?: number;
  /** Called every few thousand steps. Return false to stop, for example because of a timeout or at a user's request. */
  readonly mayGoOn?: () => boolean;
}

/** An operation that takes effect, and the object's state afterwards. */
export interface Effect {
  /** The operation. */
  readonly operation: Operation;
  /** The state after the operation, as formatted by `Model.show`. */
  readonly state: string;
}

interface Checked {
  readonly key: Value | undefined;
  /** The operations, ordered by the time of their calls. */
  readonly operations: readonly Operation[];
}

/** The finding that the object is linearizable. */
export interface Holds extends Checked {
  /** The verdict, which distinguishes this finding from the others. */
  readonly verdict: "holds";
  /**
   * Every operation that returned, and the pending operations whose effects were observed, in the order they take
   * effect.
   */
  readonly linearization: readonly Effect[];
}

/** The finding that the object is not linearizable. */
export interface Violated extends Checked {
  /** The verdict, which distinguishes this finding from the others. */
  readonly verdict: "violated";
  /**
   * The operation that has no valid position. Just before its return, the history has a linearization (given the later
   * results of operations that were in progress). With its return, the history has none. This is therefore the earliest
   * moment at which an error is certain, regardless of the order of the search.
   */
  readonly culprit: Operation;
  /**
   * The longest partial linearizations of the operations that returned before the culprit: one per final state, longest
   * first.
   */
  readonly longest: readonly (readonly Effect[])[];
  /**
   * Operations that were called before the culprit returned but have no position in the longest partial linearization.
   * The culprit comes first.
   */
  readonly unplaced: readonly Operation[];
  /**
   * The part of the history to examine: from the call of the first operation that the culprit overlaps or depends on,
   * to the culprit's return.
   */
  readonly window: { readonly from: number; readonly to: number; readonly operations: readonly Operation[] };
}

/** The finding that the check of the object was not completed. */
export interface Unknown extends Checked {
  /** The verdict, which distinguishes this finding from the others. */
  readonly verdict: "unknown";
  /**
   * Why the check was not completed. `settled`: another object violates its model, so the overall verdict is already
   * known.
   */
  readonly why: "steps" | "memory" | "stopped" | "settled";
  /** The largest number of returned operations that could be placed. */
  readonly placed: number;
  /** The number of operations that returned. */
  readonly returned: number;
  /** The longest partial linearizations found: one per final state, longest first. */
  readonly longest: readonly (readonly Effect[])[];
}

/** The result for one object. */
export type Finding = Holds | Violated | Unknown;

/** The result for a history. */
export interface Report {
  /**
   * `violated` if any object violates the model; otherwise `unknown` if any check was not completed; otherwise `holds`.
   */
  readonly verdict: Verdict;
  /** The name of the model. */
  readonly model: string;
  /** The findings, one per object, ordered by key. */
  readonly findings: readonly Finding[];
  /** The number of operations in the history. */
  readonly operations: number;
  /** The number of operations that the search tried to place. */
  readonly steps: number;
  /** The number of configurations that the search remembered. */
  readonly configurations: number;
}

/** One object being checked. */
interface Case extends Checked {
  readonly entries: Entries;
  readonly transitions: Transitions;
  readonly search: Search;
}

const SLICE = 4_096;

/**
 * Checks whether a history is linearizable, for each object separately. The searches take turns with growing shares, so
 * that a hard object does not delay finding the violation of an easy one. After the first violation, the findings on
 * unfinished objects remain `unknown`.
 *
 * @example
 * const history = readHistory(await readFile("history.edn", "utf8"), "auto", {});
 * const report = checkLinearizability(history, modelNamed("register"));
 * for (const finding of report.findings) console.log(drawText(finding, { model: report.model }));
 * @throws UsageError if the model rejects an operation
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

/** Groups operations by key. The keys are in natural order. */
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

/** Runs the searches. Returns why the check ended before all of them had finished. */
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

/**
 * Returns the operations that overlap the culprit or that produced the states at the ends of the longest
 * linearizations.
 */
function windowOf(
  culprit: Operation,
  longest: Violated["longest"],
  operations: readonly Operation[],
): Violated["window"] {
  const to = culprit.return ?? Number.POSITIVE_INFINITY;
  const causes = longest.flatMap((effects) => effects[lastChange(effects)]?.operation ?? []);
  const meets = ({ call, return: end }: Operation): boolean => call <= to && (end === null || end >= culprit.call);
  const inside = operations.filter((operation) => meets(operation) || causes.includes(operation));
  // An old pending operation may matter, but the window does not have to start at its call.
  const starts = [culprit, ...causes, ...inside.filter((operation) => operation.return !== null)];
  const from = starts.reduce((earliest, { call }) => Math.min(earliest, call), culprit.call);
  return { from, to, operations: inside };
}

/** Returns the index of the effect that produced the final state. */
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
