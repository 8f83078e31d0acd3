/** A guided tour as data: runs, places in them, fields to look at, and one prediction, which the run itself answers. */
import type { ShownRun } from "../engine/answers.ts";
import type { Words } from "../engine/recipe.ts";
import texts from "./texts.json" with { type: "json" };

export interface Tour {
  /** The name, which is used in the link and in the keys of texts. */
  readonly name: string;
  /** The runs with their forks, in the format used in links. */
  readonly runs: readonly Words[];
  readonly steps: readonly TourStep[];
}

export interface TourStep {
  /** The index of the run. Default: 0. */
  readonly run?: number;
  /**
   * The place in the run. Either `end` or, for example, `4: times out`. The latter is the next step of node 4, after
   * the tour's previous place, that has a line beginning with this text.
   */
  readonly at: string;
  /** The nodes to look at. */
  readonly nodes: readonly number[];
  /** The fields of the nodes' states to look at, by path. */
  readonly fields?: readonly string[];
  /** The choices for a prediction. The next step shows which one is right. */
  readonly ask?: readonly Choice[];
}

export interface Choice {
  /** The key of the choice's text. */
  readonly key: string;
  readonly shows: Evidence;
}

/**
 * The evidence for a choice: an event that happens (or never happens) before the tour's next step, or the state at that
 * step.
 */
export type Evidence =
  | { readonly happens: string }
  | { readonly never: string }
  | { readonly headline: string }
  | { readonly broken: string }
  | { readonly unbroken: string };

type Steps = Pick<ShownRun, "steps">;

/** Returns the run's step for each step of the tour, or null if the run does not have that step. */
export function placesOf(tour: Tour, runs: readonly Steps[]): (number | null)[] {
  const last = new Map<number, number>();
  return tour.steps.map(({ run = 0, at }) => {
    const steps = runs[run]?.steps ?? [];
    const place = at === "end" ? steps.length - 1 : next(steps, at, last.get(run) ?? -1);
    if (place >= 0) last.set(run, place);
    return place < 0 ? null : place;
  });
}

function next(steps: ShownRun["steps"], pattern: string, after: number): number {
  return steps.findIndex((step, index) => index > after && fits(step, pattern));
}

/** Returns whether a step matches a pattern. `*` matches any node. */
function fits({ node, lines }: ShownRun["steps"][number], pattern: string): boolean {
  const [, who = "", text = ""] = /^(\d+|\*): (.+)$/.exec(pattern) ?? [];
  return (who === "*" || Number(who) === node) && lines.some((line) => line.startsWith(text));
}

/** The state that answers a prediction. */
export interface Answered {
  readonly run: Pick<ShownRun, "steps" | "properties">;
  /** Only events after this step of the run count. −1 means that all events count. */
  readonly after: number;
  readonly place: number;
  readonly headline: string;
}

/** Returns the keys of all choices that the run shows to be right. */
export function rightOf(choices: readonly Choice[], answered: Answered): string[] {
  return choices.filter(({ shows }) => isShown(shows, answered)).map(({ key }) => key);
}

function isShown(evidence: Evidence, { run, after, place, headline }: Answered): boolean {
  const passed = run.steps.slice(after + 1, place + 1);
  if ("happens" in evidence) return passed.some((step) => fits(step, evidence.happens));
  if ("never" in evidence) return !passed.some((step) => fits(step, evidence.never));
  if ("headline" in evidence) return headline.includes(evidence.headline);
  const name = "broken" in evidence ? evidence.broken : evidence.unbroken;
  const property = run.properties.find((each) => each.name === name);
  if (property === undefined) return false;
  return (property.step !== null && property.step <= place) === "broken" in evidence;
}

/**
 * Returns a text of the tour: `title`, `about`, the caption of a step by its number (counting from 1), `ask`, or the
 * text of a choice, such as `choice.a`.
 */
export function textOf({ name }: Pick<Tour, "name">, key: string): string {
  return (texts as Readonly<Record<string, string>>)[`${name}.${key}`] ?? "";
}

/** Returns the tour's answer to a prediction. @param said the key that the user chose @param right the right key */
export function verdictText(tour: Pick<Tour, "name">, said: string, right: string): string {
  const choice = (key: string): string => withFullStop(textOf(tour, `choice.${key}`));
  return said === right ? `Right: ${choice(right)}` : `You said: ${choice(said)} The run shows: ${choice(right)}`;
}

const withFullStop = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

/**
 * Returns why a link does not lead to a step of a tour, or an empty string if it does.
 * @param tour undefined if the link does not name a tour
 */
export function linkProblem({ tour: name, step }: Words, tour: Pick<Tour, "steps"> | undefined): string {
  if (tour === undefined) return name === undefined ? "" : `No tour is called “${name}”. Choose one of these.`;
  const isStep = step === undefined || (/^[1-9]\d{0,8}$/.test(step) && Number(step) <= tour.steps.length);
  return isStep ? "" : `Step “${step}” does not exist: this tour has steps 1 to ${tour.steps.length}.`;
}
