/** Why a property broke: from the step that broke it back along its causes, each with a caption. */
import type { Causes } from "./causes.ts";
import type { ShownRun } from "./engine/answers.ts";

export interface Reason {
  readonly step: number;
  /** What happened there, and how it led to the reason before this one. */
  readonly caption: string;
}

/** Further back nobody asks. */
const MOST = 24;

/** The step that broke it first. */
export function reasonsOf(
  { steps, properties }: Pick<ShownRun, "steps" | "properties">,
  causes: Causes,
  property: string,
): Reason[] {
  const broken = properties.find(({ name }) => name === property)?.step ?? null;
  if (broken === null) return [];
  const did = (step: number): string => {
    const { node, lines } = steps[step] as ShownRun["steps"][number];
    return `Node ${node} ${lines.join("; ")}`;
  };
  const reasons: Reason[] = [{ step: broken, caption: `${did(broken)}. With this, “${property}” is broken.` }];
  for (let step = broken; reasons.length < MOST; ) {
    const cause = causes.reasonOf(step);
    if (cause === null) break;
    const later = steps[step]?.node;
    const led =
      cause.message === null
        ? `That is what node ${later} did before.`
        : `Its ${cause.message.label} is what node ${later} received.`;
    reasons.push({ step: cause.step, caption: `${did(cause.step)}. ${led}` });
    step = cause.step;
  }
  return reasons;
}
