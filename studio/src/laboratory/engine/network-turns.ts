/** The network conditions of a scenario and the changes by its steps, in words: faults separated by `; `. */
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import { linkTexts as textsOf } from "../../../../src/trace/link-model.ts";
import type { NetworkTurn } from "./drawing.ts";

type Step = Scenario["steps"][number];

/** The faults from the beginning; empty if every message takes the usual time. */
export function beginningText({ links = [], delayMs, ...conditions }: Scenario["network"]): string {
  const slow = delayMs === undefined || delayMs === USUAL_MS ? {} : { delayMs };
  return [...conditionTexts({ ...conditions, ...slow }), ...links.flatMap(linkTexts)].join("; ");
}

/** The default delay of a message. */
export const USUAL_MS = 10;

/** @param before the conditions until then, in the same words */
export function turnedBy(step: Step, at: number, before: string, nodes: readonly number[]): NetworkTurn[] {
  const { partition, cut, mend, link, heal } = step;
  const begun = [
    ...(partition === undefined ? [] : [splitText(partition, nodes)]),
    ...(cut === undefined ? [] : [`cut: ${listText(cut.from)} → ${listText(cut.to)}`]),
    ...(link === undefined ? [] : linkTexts(link)),
  ];
  if (begun.length === 0 && heal === undefined && mend === undefined && link === undefined) return [];
  const isMended = heal !== undefined || mend !== undefined || partition !== undefined;
  const isSaidAnew = (words: string): boolean => link !== undefined && words.startsWith(`${endsText(link)}: `);
  // A heal mends cuts. Link conditions stay until they are changed.
  const left = before
    .split("; ")
    .filter((words) => words !== "" && !isSaidAnew(words) && !(isMended && isCutText(words)));
  return [{ at, words: [...left, ...begun].join("; ") }];
}

/** Whether these words describe a cut, which a heal mends. */
export const isCutText = (words: string): boolean => /^(split|cut)/.test(words);

/** The same words, with equal conditions in both directions of a link merged. */
export function bothWays(words: string): string {
  const all = words.split("; ");
  const merged = all.flatMap((text, place): string[] => {
    const [, before = "", from, to, after = ""] = /^(cut: )?(\d+) → (\d+)(: .*)?$/.exec(text) ?? [];
    const back = from === undefined ? -1 : all.indexOf(`${before}${to} → ${from}${after}`);
    if (back === -1) return [text];
    return back < place ? [] : [`${before}${from} – ${to}${after}`];
  });
  return merged.join("; ");
}

export function splitText(partition: NonNullable<Step["partition"]>, nodes: readonly number[]): string {
  if ("oneWay" in partition) return `cut: ${listText(partition.oneWay.from)} → ${listText(partition.oneWay.to)}`;
  if ("bridge" in partition) return `split: only ${partition.bridge} is linked to both halves`;
  if ("majorityRing" in partition) return "split: each is linked only to its neighbors";
  const named = partition.flat();
  const rest = nodes.filter((node) => !named.includes(node));
  return `split: ${[...partition, ...(rest.length === 0 ? [] : [rest])].map(listText).join(" | ")}`;
}

const listText = (nodes: unknown): string => (Array.isArray(nodes) ? nodes.join(", ") : String(nodes));

export type Conditions = Pick<Scenario["network"], "delayMs" | "lossRate" | "duplicateRate" | "order">;

/** Empty if the conditions are the default. */
export function linkTexts({ from, to, ...conditions }: NonNullable<Step["link"]>): string[] {
  const texts = conditionTexts(conditions);
  return texts.length === 0 ? [] : [`${endsText({ from, to })}: ${texts.join(", ")}`];
}

const endsText = ({ from, to }: Pick<NonNullable<Step["link"]>, "from" | "to">): string =>
  `${listText(from)} → ${listText(to)}`;

export const conditionTexts = ({ delayMs, ...conditions }: Conditions): string[] =>
  textsOf({ ...conditions, ...(delayMs === undefined ? {} : { delay: delayMs }) });
