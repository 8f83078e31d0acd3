/** What of an object is drawn: all of it, or as much as a person can take in around the place that matters. */
import type { Effect, Finding } from "../check.ts";
import type { Operation } from "../history.ts";

export interface Selection {
  /** By their calls. */
  readonly operations: readonly Operation[];
  /** Of the longest linearization, those of the operations drawn, with their numbers in the whole. */
  readonly effects: readonly (Effect & { readonly number: number; readonly isChange: boolean })[];
  readonly culprit: Operation | null;
  /** How many operations are left out. */
  readonly left: { readonly before: number; readonly after: number };
}

export function select(finding: Finding, maxOperations: number): Selection {
  const effects = (finding.verdict === "holds" ? finding.linearization : finding.longest[0]) ?? [];
  const culprit = finding.verdict === "violated" ? finding.culprit : null;
  const { first, end } = stretch(finding, effects, maxOperations);
  const near = finding.operations.slice(first, end);
  // It may have been called so long ago that it is not near.
  const operations = culprit === null || near.includes(culprit) ? near : [culprit, ...near.slice(1)];
  const drawn = new Set(operations);
  return {
    operations,
    effects: effects
      .map((effect, at) => ({ ...effect, number: at + 1 }))
      .filter(({ operation }) => drawn.has(operation))
      .map((effect, at, all) => ({ ...effect, isChange: all[at - 1]?.state !== effect.state })),
    culprit,
    left: { before: first, after: finding.operations.length - end },
  };
}

/** A violation and an unfinished search are shown where they end, a proof from its beginning. */
function stretch(finding: Finding, effects: readonly Effect[], max: number): { first: number; end: number } {
  const { operations, verdict } = finding;
  const atMost = Math.min(max, operations.length);
  if (verdict === "holds") return { first: 0, end: atMost };
  const to = verdict === "violated" ? finding.window.to : (effects.at(-1)?.operation.call ?? 0);
  const end = verdict === "violated" ? calledUntil(operations, to) : Math.max(calledUntil(operations, to), atMost);
  return { first: Math.max(0, end - max), end };
}

const calledUntil = (operations: readonly Operation[], to: number): number =>
  operations.filter(({ call }) => call <= to).length;
