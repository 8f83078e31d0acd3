/**
 * Finds the causes and effects of a step, following nodes and received messages (Lamport's happened-before relation).
 */
import type { ShownRun } from "./engine/answers.ts";
import type { ShownMessage } from "./engine/drawing.ts";

/**
 * The direct cause of a step, and the message between them. The message is null if the cause is the previous step of
 * the same node.
 */
export interface Cause {
  readonly step: number;
  readonly message: ShownMessage | null;
}

export class Causes {
  /**
   * For each step, its direct causes, with the send of a received message first. The next field contains the direct
   * effects.
   */
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

  /** Returns the step itself, its causal past and its causal future. */
  coneOf(step: number): ReadonlySet<number> {
    return new Set([...reached(step, this.#causes), ...reached(step, this.#effects)]);
  }

  /**
   * Returns the step that sent the received message or, if no message was received, the node's previous step. If there
   * is neither, returns the step itself.
   */
  causeOf(step: number): number {
    return this.#causes[step]?.[0] ?? step;
  }

  /** Returns the cause with its message, or null if there is none. */
  reasonOf(step: number): Cause | null {
    const cause = this.#causes[step]?.[0];
    if (cause === undefined) return null;
    const message = this.#messages.find(({ sent, ended, lost }) => sent === cause && ended === step && lost === null);
    return { step: cause, message: message ?? null };
  }

  /**
   * Returns the step that is the first to receive one of the step's messages or, if there is none, the node's next
   * step. If there is neither, returns the step itself.
   */
  effectOf(step: number): number {
    return this.#effects[step]?.[0] ?? step;
  }
}

function reached(from: number, edges: readonly (readonly number[])[]): Set<number> {
  const seen = new Set([from]);
  for (const step of seen) for (const next of edges[step] ?? []) seen.add(next); // This also visits added elements.
  return seen;
}

export interface Reason {
  readonly step: number;
  /** Describes the event at the step and how it led to the previous reason. */
  readonly caption: string;
}

/** The maximum length of a chain. Longer ones are not useful. */
const MOST = 24;

/** Returns the step at which the property broke, followed by its causes. */
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
  const reasons: Reason[] = [{ step: broken, caption: `${did(broken)}. This breaks “${property}”.` }];
  for (let step = broken; reasons.length < MOST; ) {
    const cause = causes.reasonOf(step);
    if (cause === null) break;
    const later = steps[step]?.node;
    const led =
      cause.message === null
        ? `This is the previous step of node ${later}.`
        : `Node ${later} received its ${cause.message.label}.`;
    reasons.push({ step: cause.step, caption: `${did(cause.step)}. ${led}` });
    step = cause.step;
  }
  return reasons;
}
