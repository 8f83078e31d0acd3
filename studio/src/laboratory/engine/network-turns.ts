/** What the network of a scenario is like, and what its steps do to it, in words: one fault after the other, with `; ` between them. */
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import { linkTexts as textsOf } from "../../../../src/trace/link-model.ts";
import type { NetworkTurn } from "./drawing.ts";

type Step = Scenario["steps"][number];

/** What is wrong with the network from the beginning; empty where every message takes the usual time. */
export function beginningText({ links = [], delayMs, ...conditions }: Scenario["network"]): string {
  const slow = delayMs === undefined || delayMs === USUAL_MS ? {} : { delayMs };
  return [...conditionTexts({ ...conditions, ...slow }), ...links.flatMap(linkTexts)].join("; ");
}

/** So long a message takes where nobody says otherwise. */
export const USUAL_MS = 10;

/** @param before what the network was like until then, in the same words */
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
  // A heal mends cuts; what was done to links stays, until it is done otherwise.
  const left = before
    .split("; ")
    .filter((words) => words !== "" && !isSaidAnew(words) && !(isMended && isCutText(words)));
  return [{ at, words: [...left, ...begun].join("; ") }];
}

/** Whether these words are of links through which nothing passes, which a heal mends. */
export const isCutText = (words: string): boolean => /^(split|cut)/.test(words);

/** The same with what is alike in both directions of a link said once. */
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
  if ("bridge" in partition) return `split: only ${partition.bridge} hears both halves`;
  if ("majorityRing" in partition) return "split: each hears its neighbours only";
  const named = partition.flat();
  const rest = nodes.filter((node) => !named.includes(node));
  return `split: ${[...partition, ...(rest.length === 0 ? [] : [rest])].map(listText).join(" | ")}`;
}

const listText = (nodes: unknown): string => (Array.isArray(nodes) ? nodes.join(", ") : String(nodes));

export type Conditions = Pick<Scenario["network"], "delayMs" | "lossRate" | "duplicateRate" | "order">;

/** None where it is as usual. */
export function linkTexts({ from, to, ...conditions }: NonNullable<Step["link"]>): string[] {
  const texts = conditionTexts(conditions);
  return texts.length === 0 ? [] : [`${endsText({ from, to })}: ${texts.join(", ")}`];
}

const endsText = ({ from, to }: Pick<NonNullable<Step["link"]>, "from" | "to">): string =>
  `${listText(from)} → ${listText(to)}`;

export const conditionTexts = ({ delayMs, ...conditions }: Conditions): string[] =>
  textsOf({ ...conditions, ...(delayMs === undefined ? {} : { delay: delayMs }) });
