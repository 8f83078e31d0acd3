/** A delay as people write it. */
import { type Delay, requireDelay } from "../trace/link-model.ts";
import { type Read, refuse } from "./written-values.ts";

/** `10`, `1..10`, `normal:10,2` (mean, deviation) or `lognormal:10,0.5` (median, sigma). */
export const delay: Read<Delay> = (text, word) => {
  const [, kind, from, to] = /^(normal:|lognormal:|)(\d*\.?\d+)(?:(?:\.\.|,)(\d*\.?\d+))?$/.exec(text) ?? [];
  const made = delayFrom(kind, Number(from), to === undefined ? null : Number(to), text.includes(".."));
  if (made === null) return refuse(word, "such as 10, 1..10, normal:10,2 or lognormal:10,0.5, in milliseconds", text);
  requireDelay(made, word);
  return made;
};

function delayFrom(kind: string | undefined, first: number, second: number | null, isRange: boolean): Delay | null {
  if (kind === "" && second === null) return first;
  if (kind === "" && second !== null && isRange) return [first, second];
  if (second === null || isRange) return null;
  if (kind === "normal:") return { normal: { meanMs: first, deviationMs: second } };
  return kind === "lognormal:" ? { logNormal: { medianMs: first, sigma: second } } : null;
}
