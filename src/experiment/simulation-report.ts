/** What a simulated run came to, as data. */
import type { Cost, NodeId } from "../core/protocol.ts";
import type { Outcome } from "../protocols/index.ts";
import type { TraceHeader } from "../trace/header.ts";
import { liarsIn } from "./recording-header.ts";
import type { Result } from "./scenario/result.ts";
import { askWords, type Scenario } from "./scenario/schema.ts";
import type { Staged } from "./simulate.ts";

/** The JSON of `coterie sim`. */
export function simulationReport({ scenario, cast }: Staged, result: Result) {
  const { protocol, seed, name } = scenario;
  const { timeMs, messages, datagrams, lost, outcome, nodesAlive, expectations } = result;
  const sent = "delivered" in outcome ? { messages, datagrams } : { messages };
  const properties = result.properties.map(({ name: claimed, verdict, why }) =>
    why === "" ? { name: claimed, verdict } : { name: claimed, verdict, why },
  );
  const nodes = cast.ids.length;
  const run = { protocol, nodes, seed, timeMs, ...sent, lost, outcome, properties, nodesAlive };
  return name === protocol ? run : { ...run, scenario: name, expectations };
}

/** The first line of its trace. */
export function simulatedHeader({ scenario, cast, from }: Staged, { properties }: Result): TraceHeader {
  const violated = properties
    .filter(({ verdict }) => verdict === "violated")
    .toSorted((a, b) => Number(a.at) - Number(b.at))[0];
  return {
    kind: "trace",
    version: 1,
    madeBy: "simulator",
    protocol: scenario.protocol,
    form: from?.header.form ?? "model",
    variant: scenario.variant ?? null,
    options: cast.options,
    nodes: cast.ids.toSorted((a, b) => a - b),
    seed: scenario.seed,
    ...liarsIn(scenario.byzantine),
    ...(Object.keys(scenario.begin.states).length === 0 ? {} : { states: scenario.begin.states }),
    violation: violated === undefined ? null : { property: violated.name, claim: violated.claim, loopFrom: null },
  };
}

/** What is not as it should be, in a sentence; null where all is. */
export function disappointment({ expectations }: Pick<Result, "expectations">): string | null {
  const unmet = expectations.filter(({ passed }) => !passed);
  const [first] = unmet;
  if (first === undefined) return null;
  const violated = (unmet.find(({ what }) => what === "violated")?.actual ?? []) as readonly string[];
  return unmet.length === 1 && violated.length > 0
    ? `violated: ${violated.join(", ")}`
    : `${unmet.length} of ${expectations.length} expectations not met, first ${first.what}`;
}

/** Equal values with the nodes that have them, in the order of the first of each. */
export function alike<T>(byNode: Readonly<Record<NodeId, T>>): { value: T; nodes: NodeId[] }[] {
  const groups = new Map<string, { value: T; nodes: NodeId[] }>();
  for (const [id, value] of Object.entries(byNode)) {
    const key = JSON.stringify(value);
    const group = groups.get(key) ?? { value, nodes: [] };
    group.nodes.push(Number(id));
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** Whether the messages are those of an algorithm that came to its end with nothing in its way but nodes that were down. */
function isUndisturbed({ network, byzantine, steps }: Scenario, { isOver }: Result): boolean {
  const { lossRate = 0, duplicateRate = 0, links = [] } = network;
  const isCalm = lossRate === 0 && duplicateRate === 0 && links.length === 0 && Object.keys(byzantine).length === 0;
  return isOver && isCalm && steps.every((step) => askWords.some((word) => step[word] !== undefined));
}

/** How often the algorithm was used, where the book counts the messages of one use: entries and multicasts. Otherwise 1. */
export function usesIn(scenario: Scenario, result: Result): number {
  return isUndisturbed(scenario, result) ? usesOf(result.outcome) : 1;
}

function usesOf(outcome: Outcome): number {
  if ("entries" in outcome) return outcome.entries.filter(({ enteredAt }) => enteredAt !== null).length;
  return "delivered" in outcome ? new Set(Object.values(outcome.delivered).flat()).size : 1;
}

/** Counts of the literature to compare with, each for the case that it is of: which of them ran is for the reader to say. */
export function publishedCosts(
  costs: readonly Cost[],
  nodes: number,
  scenario: Scenario,
  result: Result,
): { readonly when: string; readonly count: number }[] {
  if (!isUndisturbed(scenario, result) || nodes === 1 || usesOf(result.outcome) === 0) return [];
  return costs.map(({ when, messages }) => ({ when, count: messages(nodes) })).filter(({ count }) => count >= 0);
}
