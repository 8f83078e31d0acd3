/**
 * The result of checking a history, as plain data that can be sent between threads: the verdict on each object, and a
 * picture of the object that decided the overall verdict.
 */
import { checkLinearizability, type Finding, type Report, type Violated } from "./check.ts";
import type { History } from "./history.ts";
import { modelNamed, show } from "./model.ts";
import { drawText } from "./picture.ts";

/** A request to run a check in another thread. */
export interface HistoryRequest {
  readonly history: History;
  readonly model: string;
}

/** The result of a check. */
export interface HistoryAnswer {
  readonly report: Omit<Report, "findings">;
  readonly objects: readonly ObjectAnswer[];
  /** The picture of the object that decided the verdict, as text. */
  readonly text: string;
}

/** The result for one object. */
export interface ObjectAnswer {
  readonly key: unknown;
  readonly verdict: Finding["verdict"];
  readonly operations: number;
  /** The operation that has no valid position. Null if there is none. */
  readonly culprit: {
    readonly operation: string;
    readonly process: number | string;
    readonly line: number | null;
  } | null;
  /** Why the verdict is unknown. Null if it is known. */
  readonly why: string | null;
  /** The complete linearization or, if there is none, the longest partial one. */
  readonly linearization: readonly { readonly operation: string; readonly state: string }[];
}

/** Runs the check. Return false from `mayGoOn` to stop it. */
export function answerTo({ history, model }: HistoryRequest, mayGoOn: () => boolean): HistoryAnswer {
  const { findings, ...report } = checkLinearizability(history, modelNamed(model), { mayGoOn });
  const shown = findings.find(({ verdict }) => verdict === report.verdict);
  return {
    report,
    objects: findings.map(objectAnswer),
    text: shown === undefined ? "" : drawText(shown, { model, remarks: history.remarks }),
  };
}

function objectAnswer(finding: Finding): ObjectAnswer {
  const { key = null, verdict, operations } = finding;
  const effects = finding.verdict === "holds" ? finding.linearization : (finding.longest[0] ?? []);
  return {
    key,
    verdict,
    operations: operations.length,
    culprit: finding.verdict === "violated" ? culpritOf(finding) : null,
    why: finding.verdict === "unknown" ? finding.why : null,
    linearization: effects.map(({ operation, state }) => ({ operation: show(operation), state })),
  };
}

function culpritOf({ culprit }: Violated): ObjectAnswer["culprit"] {
  return { operation: show(culprit), process: culprit.process, line: culprit.line };
}
