/** What led to a step and what it led to: along the lines of nodes and along messages that arrived (Lamport's happened-before). */
import type { ShownRun } from "./engine/answers.ts";
import type { ShownMessage } from "./engine/drawing.ts";

/** The step right before another, and the message that it sent to it; null where it is what the same node did before. */
export interface Cause {
  readonly step: number;
  readonly message: ShownMessage | null;
}

export class Causes {
  /** Of each step, the steps right before it, the sending of what it received first, and right after it. */
  readonly #causes: number[][];
  readonly #effects: number[][];
  readonly #messages: readonly ShownMessage[];

  constructor({
    steps,
    drawing,
  }: Pick<ShownRun, "steps"> & { readonly drawing: Pick<ShownRun["drawing"], "messages"> }) {
    this.#messages = drawing.messages;
    this.#causes = steps.map(() => []);
    this.#effects = steps.map(() => []);
    for (const { sent, ended, lost } of drawing.messages) if (lost === null) this.#link(sent, ended);
    const last = new Map<number, number>();
    for (const [place, { node }] of steps.entries()) {
      this.#link(last.get(node) ?? null, place);
      last.set(node, place);
    }
  }

  #link(cause: number | null, effect: number | null): void {
    if (cause === null || effect === null || cause === effect) return;
    this.#causes[effect]?.push(cause);
    this.#effects[cause]?.push(effect);
  }

  /** The step itself, its causal past and its causal future. */
  coneOf(step: number): ReadonlySet<number> {
    return new Set([...reached(step, this.#causes), ...reached(step, this.#effects)]);
  }

  /** Where the message was sent that it received, else what its node did before; itself where nothing was. */
  causeOf(step: number): number {
    return this.#causes[step]?.[0] ?? step;
  }

  /** The same with the message; null where nothing was. */
  reasonOf(step: number): Cause | null {
    const cause = this.#causes[step]?.[0];
    if (cause === undefined) return null;
    const message = this.#messages.find(({ sent, ended, lost }) => sent === cause && ended === step && lost === null);
    return { step: cause, message: message ?? null };
  }

  /** Where the first of its messages arrives, else what its node does next; itself where nothing follows. */
  effectOf(step: number): number {
    return this.#effects[step]?.[0] ?? step;
  }
}

function reached(from: number, edges: readonly (readonly number[])[]): Set<number> {
  const seen = new Set([from]);
  for (const step of seen) for (const next of edges[step] ?? []) seen.add(next); // A set is walked with what is added.
  return seen;
}

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
