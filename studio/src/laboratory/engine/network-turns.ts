/** Describes the network conditions in a scenario and how its steps change them. Faults are separated by `; `. */
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import { linkTexts as textsOf } from "../../../../src/trace/link-model.ts";
import type { NetworkTurn } from "./drawing.ts";

type Step = Scenario["steps"][number];

/** Describes the initial faults. Empty if all messages have the default delay. */
export function beginningText({ links = [], delayMs, ...conditions }: Scenario["network"]): string {
  const slow = delayMs === undefined || delayMs === USUAL_MS ? {} : { delayMs };
  return [...conditionTexts({ ...conditions, ...slow }), ...links.flatMap(linkTexts)].join("; ");
}

/** The default delay of a message, in milliseconds. */
export const USUAL_MS = 10;

/** Describes the conditions after a step, if the step changes them. @param before the previous description */
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
  // Healing mends cuts. Link conditions last until they are changed.
  const left = before
    .split("; ")
    .filter((words) => words !== "" && !isSaidAnew(words) && !(isMended && isCutText(words)));
  return [{ at, words: [...left, ...begun].join("; ") }];
}

/** Returns whether the text describes a cut, which healing would mend. */
export const isCutText = (words: string): boolean => /^(split|cut)/.test(words);

/** Merges conditions that are equal in both directions of a link. */
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

/** Describes link conditions. Empty if they are the default conditions. */
export function linkTexts({ from, to, ...conditions }: NonNullable<Step["link"]>): string[] {
  const texts = conditionTexts(conditions);
  return texts.length === 0 ? [] : [`${endsText({ from, to })}: ${texts.join(", ")}`];
}

const endsText = ({ from, to }: Pick<NonNullable<Step["link"]>, "from" | "to">): string =>
  `${listText(from)} → ${listText(to)}`;

export const conditionTexts = ({ delayMs, ...conditions }: Conditions): string[] =>
  textsOf({ ...conditions, ...(delayMs === undefined ? {} : { delay: delayMs }) });
