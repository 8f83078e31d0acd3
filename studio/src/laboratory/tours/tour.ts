/** A guided tour as data: runs, places in them, fields to look at, and one prediction that the run itself answers. */
import type { ShownRun } from "../engine/answers.ts";
import type { Words } from "../engine/recipe.ts";
import texts from "./texts.json" with { type: "json" };

export interface Tour {
  /** Used in the link and in the keys of its texts. */
  readonly name: string;
  /** Recipes with their forks, as in links. */
  readonly runs: readonly Words[];
  readonly steps: readonly TourStep[];
}

export interface TourStep {
  /** The index of the run; 0 by default. */
  readonly run?: number;
  /** `end`, or `4: times out`: the next step of node 4 in that run, after the tour's last place, with a line that begins so. */
  readonly at: string;
  /** The nodes to look at. */
  readonly nodes: readonly number[];
  /** The fields of their states to look at, by path. */
  readonly fields?: readonly string[];
  /** The choices of a prediction before the tour continues. The next step shows which of them is right. */
  readonly ask?: readonly Choice[];
}

export interface Choice {
  /** The key of its text. */
  readonly key: string;
  readonly shows: Evidence;
}

/** The evidence for a choice: something happens, or never happens, up to the tour's next step, or the state at that step. */
export type Evidence =
  | { readonly happens: string }
  | { readonly never: string }
  | { readonly headline: string }
  | { readonly broken: string }
  | { readonly unbroken: string };

type Steps = Pick<ShownRun, "steps">;

/** The step of its run for each step of the tour; null if the run does not have it. */
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

/** `*` matches any node. */
function fits({ node, lines }: ShownRun["steps"][number], pattern: string): boolean {
  const [, who = "", text = ""] = /^(\d+|\*): (.+)$/.exec(pattern) ?? [];
  return (who === "*" || Number(who) === node) && lines.some((line) => line.startsWith(text));
}

/** The state at which a prediction is answered. */
export interface Answered {
  readonly run: Pick<ShownRun, "steps" | "properties">;
  /** Events count after this step of the run; −1 if the run begins there. */
  readonly after: number;
  readonly place: number;
  readonly headline: string;
}

/** The keys of all choices that are right according to the run. */
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

/** A text of the tour: `title`, `about`, the caption of a step by its number from 1, `ask`, or `choice.a` of a choice. */
export function textOf({ name }: Pick<Tour, "name">, key: string): string {
  return (texts as Readonly<Record<string, string>>)[`${name}.${key}`] ?? "";
}

/** The tour's answer to a prediction. @param said the chosen key @param right the right key */
export function verdictText(tour: Pick<Tour, "name">, said: string, right: string): string {
  const choice = (key: string): string => withFullStop(textOf(tour, `choice.${key}`));
  return said === right ? `Right: ${choice(right)}` : `You said: ${choice(said)} The run shows: ${choice(right)}`;
}

const withFullStop = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

/** Why a link does not lead to a step of a tour; empty if it does. @param tour undefined if the link names none */
export function linkProblem({ tour: name, step }: Words, tour: Pick<Tour, "steps"> | undefined): string {
  if (tour === undefined) return name === undefined ? "" : `No tour is called “${name}”. Choose one of these.`;
  const isStep = step === undefined || (/^[1-9]\d{0,8}$/.test(step) && Number(step) <= tour.steps.length);
  return isStep ? "" : `Step “${step}” does not exist: this tour has steps 1 to ${tour.steps.length}.`;
}
