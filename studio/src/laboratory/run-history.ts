/** A run on one of its axes, in the form that the diagram draws: with positions on the axis instead of moments. */
import { firstAfter, firstFrom, Levels } from "../diagram/levels.ts";
import { endOf, type Happening, type History, type Message, momentOf, type Windowed } from "../diagram/picture.ts";
import type { StateSpan } from "../diagram/states.ts";
import type { ShownAxis, ShownDrawing, ShownMark, ShownMessage } from "./engine/drawing.ts";

/** A message with the steps at its two ends. */
export interface RunMessage extends Message {
  readonly shown: ShownMessage;
}

const conditions = { up: "running", down: "gone", paused: "paused" } as const;
const WEIGHTS: Partial<Record<ShownMark["kind"], number>> = { event: 3, crash: 3, start: 0, timeout: 1 };
const UNSAID = { type: "" };

/** The maximum number of items of each kind in a layout. More could not be distinguished. */
const MOST = 2_000;

/** A lasting state whose ends are positions on the axis. */
type Placed<T> = Omit<T, "from" | "to"> & { readonly from: number; readonly to: number };

export class RunHistory implements Windowed<RunMessage> {
  readonly #drawing: ShownDrawing;
  readonly #axis: ShownAxis;
  readonly #messages: Levels<RunMessage>;
  readonly #marks: Levels<Happening>;
  readonly #lives: Levels<Placed<ShownDrawing["lives"][number]>>;
  readonly #states: Levels<StateSpan>;
  readonly #held: Levels<ShownDrawing["held"][number]>;
  readonly #ticks: readonly number[];

  constructor(drawing: ShownDrawing, axis: ShownAxis) {
    this.#drawing = drawing;
    this.#axis = axis;
    const lanes = new Lanes();
    const at = (step: number): number => axis.steps[step] ?? axis.end;
    const begin = (step: number | null): number => (step === null ? Number.NEGATIVE_INFINITY : at(step));
    const end = (step: number | null): number => (step === null ? Number.POSITIVE_INFINITY : at(step));
    const lasting = <T extends { readonly node: number; readonly from: number; readonly to: number }>(
      things: readonly T[],
      laneOf: (thing: T) => string,
    ) =>
      new Levels(
        things,
        (thing) => ({ begin: thing.from, end: thing.to, lane: lanes.of(`${thing.node} ${laneOf(thing)}`) }),
        { keepsLong: true },
      );
    this.#messages = new Levels(
      drawing.messages.map((shown) => messageOf(shown, at)),
      (message) => {
        const [first, last] = [momentOf(message), endOf(message)];
        const length = Math.ceil(Math.log2(1 + last - first));
        return { begin: first, end: last, lane: lanes.of(`${message.from} ${message.to} ${length}`) };
      },
      { keepsLong: false },
    );
    this.#marks = new Levels(
      drawing.marks.map((mark, key) => markOf(mark, key, at(mark.step))),
      ({ at: place, node, kind }) => ({ begin: place, end: place, lane: lanes.of(`${node} ${kind}`) }),
      { keepsLong: false, prefers: (next, kept) => next.kind === "event" && weightOf(next) >= weightOf(kept) },
    );
    this.#lives = lasting(
      drawing.lives.map((life) => ({ ...life, from: begin(life.from), to: end(life.to) })),
      ({ condition, leads }) => `${condition} ${leads}`,
    );
    this.#states = lasting(
      drawing.states.map((state) => ({ ...state, from: begin(state.from), to: end(state.to) })),
      ({ kind }) => kind,
    );
    this.#held = new Levels(
      drawing.held.map((track) => ({
        ...track,
        from: track.from === null ? null : at(track.from),
        to: track.to === null ? null : at(track.to),
      })),
      ({ node, row, from, to }) => ({
        begin: from ?? Number.NEGATIVE_INFINITY,
        end: to ?? Number.POSITIVE_INFINITY,
        lane: lanes.of(`${node} ${row}`),
      }),
      { keepsLong: true },
    );
    this.#ticks = axis.ticks.map((tick) => tick.at);
  }

  /** The number of items examined so far, for use in tests. */
  get touched(): number {
    return [this.#messages, this.#marks, this.#lives, this.#states, this.#held].reduce(
      (sum, { touched }) => sum + touched,
      0,
    );
  }

  /**
   * Builds the levels for windows of a long run step by step, because building them all at once would block the page.
   */
  *making(): Generator<void> {
    for (const each of [this.#messages, this.#marks, this.#lives, this.#states, this.#held]) yield* each.making(MOST);
  }

  between(from: number, to: number): History<RunMessage> {
    const { nodes } = this.#drawing;
    const { ticks, breaks, networks } = this.#axis;
    const [lives, held] = [this.#lives.between(from, to, MOST), this.#held.between(from, to, MOST)];
    const lifeOf = (node: number) => {
      const own = lives.filter((life) => life.node === node);
      const stretches = own.map((life) => ({ ...life, condition: conditions[life.condition] }));
      const tracks = held.filter((track) => track.node === node);
      return { stretches: () => stretches, holdBack: { tracks: () => tracks } };
    };
    return {
      messages: this.#messages.between(from, to, MOST),
      messageCount: this.#messages.count(from, to),
      marks: this.#marks.between(from, to, MOST),
      lives: new Map(nodes.map((node) => [node, lifeOf(node)])),
      networks,
      states: this.#states.between(from, to, MOST),
      axis: {
        ticks: fewOf(ticks, firstFrom(this.#ticks, from), firstAfter(this.#ticks, to)),
        breaks: fewOf(breaks, firstFrom(breaks, from), firstAfter(breaks, to)),
      },
    };
  }
}

/** Returns every second (or fourth, and so on) item in a range, so that only a few are left. */
function fewOf<T>(all: readonly T[], from: number, to: number): T[] {
  const apart = 2 ** Math.max(0, Math.ceil(Math.log2((to - from) / MOST)));
  const few: T[] = [];
  for (let place = Math.ceil(from / apart) * apart; place < to; place += apart) few.push(all[place] as T);
  return few;
}

/** Maps names to numbers. */
class Lanes {
  readonly #numbers = new Map<string, number>();

  of(words: string): number {
    let number = this.#numbers.get(words);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(words, number);
    }
    return number;
  }
}

const weightOf = ({ inscription }: Happening): number => inscription?.weight ?? 0;

function markOf({ node, kind, label, nudge }: ShownMark, key: number, at: number): Happening {
  const name = { full: label, short: label, part: null };
  return { key, at, node, kind, name, content: null, inscription: { label, weight: WEIGHTS[kind] ?? 2 }, nudge };
}

/** Returns the part of a drawing that belongs to the given steps. */
export function only(drawing: ShownDrawing, steps: ReadonlySet<number>): ShownDrawing {
  const isIn = (step: number | null): boolean => step === null || steps.has(step);
  return {
    ...drawing,
    messages: drawing.messages.filter(({ sent, ended, lost }) => isIn(sent) && (lost !== null || isIn(ended))),
    marks: drawing.marks.filter(({ step }) => steps.has(step)),
    held: [],
    states: [],
  };
}

function messageOf(shown: ShownMessage, at: (step: number) => number): RunMessage {
  const { id, name, from, to, label, sent, ended, lost } = shown;
  const endAt = ended === null ? null : at(ended);
  return {
    id,
    name,
    from,
    to,
    content: UNSAID,
    sentAt: sent === null ? null : at(sent),
    receivedAt: lost === null ? endAt : null,
    loss: lost === null || endAt === null ? null : { at: endAt, node: to },
    label,
    shown,
  };
}
