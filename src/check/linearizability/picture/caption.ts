/** What a picture says in words. */
import type { Finding, Unknown } from "../check.ts";
import type { Operation } from "../history.ts";
import { show, showValue } from "../model.ts";
import { shortened } from "./layout.ts";
import type { Selection } from "./selection.ts";

export interface Caption {
  readonly title: string;
  readonly sentences: readonly string[];
}

const MAX_WORDS = 60;

const REASONS: Readonly<Record<Unknown["why"], string>> = {
  steps: "the steps allowed were used up",
  memory: "the memory allowed was used up",
  stopped: "it was stopped",
  settled: "another object is violated already",
};

export function captionOf(finding: Finding, model: string): Caption {
  const object = finding.key === undefined ? model : `${model} ${showValue(finding.key)}`;
  switch (finding.verdict) {
    case "holds": {
      const unseen = finding.operations.length - finding.linearization.length;
      const noted = unseen === 0 ? "" : ` ${unseen} that never returned may not have happened.`;
      return {
        title: `${object}: linearizable`,
        sentences: [`${finding.linearization.length} operations, each taking effect at its point.${noted}`],
      };
    }
    case "unknown":
      return {
        title: `${object}: unknown`,
        sentences: [
          `${finding.placed} of ${finding.returned} operations have been placed so far; ${REASONS[finding.why]}.`,
          "This is not a pass: nobody knows whether the rest has a place.",
        ],
      };
    case "violated": {
      const ends = finding.longest.map((effects) => effects.at(-1)?.state);
      const states = ends.filter((state) => state !== undefined).map((state) => shortened(state, MAX_WORDS));
      return {
        title: `${object}: not linearizable`,
        sentences: [
          `${named(finding.culprit)} has no place.`,
          states.length === 0
            ? "Nothing that was called before it returned can come before it."
            : `The others can be ordered as numbered, but then the state is ${states.join(", or in other orders ")}.`,
        ],
      };
    }
  }
}

/** `read → 1 (process 2, line 7)` */
const named = (operation: Operation): string =>
  `${show(operation)} (process ${operation.process}${operation.line === null ? "" : `, line ${operation.line}`})`;

/** What the picture does not show. */
export function omissions({ before, after }: Selection["left"]): string[] {
  const counted = (count: number, when: string): string[] =>
    count === 0 ? [] : [`(${count} ${when} operation${count === 1 ? "" : "s"} left out)`];
  return [...counted(before, "earlier"), ...counted(after, "later")];
}
