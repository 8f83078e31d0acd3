/** What a step of a scenario does to the network, in words. */
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import type { NetworkTurn } from "./drawing.ts";

type Step = Scenario["steps"][number];

/** @param before what the network was like until then, in the same words */
export function turnedBy(step: Step, at: number, before: string, nodes: readonly number[]): NetworkTurn[] {
  const { partition, cut, mend, link, heal } = step;
  const begun = [
    ...(partition === undefined ? [] : [splitText(partition, nodes)]),
    ...(cut === undefined ? [] : [`cut: ${listText(cut.from)} → ${listText(cut.to)}`]),
    ...(link === undefined ? [] : [linkText(link)]),
  ];
  if (begun.length === 0 && heal === undefined && mend === undefined) return [];
  const isMended = heal !== undefined || mend !== undefined || partition !== undefined;
  // A heal mends cuts; what was done to links stays.
  const left = before.split("; ").filter((words) => words !== "" && !(isMended && /^(split|cut)/.test(words)));
  return [{ at, words: [...left, ...begun].join("; ") }];
}

function splitText(partition: NonNullable<Step["partition"]>, nodes: readonly number[]): string {
  if ("oneWay" in partition) return `cut: ${listText(partition.oneWay.from)} → ${listText(partition.oneWay.to)}`;
  if ("bridge" in partition) return `split: only ${partition.bridge} hears both halves`;
  if ("majorityRing" in partition) return "split: each hears its neighbours only";
  const named = partition.flat();
  const rest = nodes.filter((node) => !named.includes(node));
  return `split: ${[...partition, ...(rest.length === 0 ? [] : [rest])].map(listText).join(" | ")}`;
}

const listText = (nodes: unknown): string => (Array.isArray(nodes) ? nodes.join(", ") : String(nodes));

function linkText({ from, to, ...conditions }: NonNullable<Step["link"]>): string {
  const changed = Object.entries(conditions).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return `${listText(from)} → ${listText(to)}: ${changed.join(", ")}`;
}
