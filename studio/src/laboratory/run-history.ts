/** A run on one of its axes, as the diagram draws histories: places stand for moments. */
import type { History, Message } from "../diagram/picture.ts";
import type { ShownAxis, ShownDrawing, ShownMark, ShownMessage } from "./engine/drawing.ts";

/** A message that knows its steps. */
export interface RunMessage extends Message {
  readonly shown: ShownMessage;
}

const conditions = { up: "running", down: "gone", paused: "paused" } as const;
const WEIGHTS: Partial<Record<ShownMark["kind"], number>> = { event: 3, crash: 3, start: 0, timeout: 1 };
const UNSAID = { type: "" };

export function historyOf(drawing: ShownDrawing, axis: ShownAxis): History<RunMessage> {
  const at = (step: number): number => axis.steps[step] ?? axis.end;
  const begin = (step: number | null): number => (step === null ? Number.NEGATIVE_INFINITY : at(step));
  const end = (step: number | null): number => (step === null ? Number.POSITIVE_INFINITY : at(step));
  return {
    messages: drawing.messages.map((shown) => messageOf(shown, at)),
    marks: drawing.marks.map(({ step, node, kind, label, nudge }, key) => ({
      key,
      at: at(step),
      node,
      kind,
      name: { full: label, short: label, part: null },
      content: null,
      inscription: { label, weight: WEIGHTS[kind] ?? 2 },
      nudge,
    })),
    lives: new Map(
      drawing.nodes.map((node) => {
        const own = drawing.lives.filter((each) => each.node === node);
        const stretches = own.map(({ from, to, condition, leads, role }) => ({
          from: begin(from),
          to: end(to),
          condition: conditions[condition],
          leads,
          role,
        }));
        const held = drawing.held
          .filter((each) => each.node === node)
          .map((track) => ({
            ...track,
            from: track.from === null ? null : at(track.from),
            to: track.to === null ? null : at(track.to),
          }));
        return [node, { stretches: () => stretches, holdBack: { tracks: () => held } }];
      }),
    ),
    networks: axis.networks,
    states: drawing.states.map((state) => ({ ...state, from: begin(state.from), to: end(state.to) })),
    axis: { ticks: axis.ticks, breaks: axis.breaks },
  };
}

/** What of it happened in some steps. */
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
