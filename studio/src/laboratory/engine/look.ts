/** Returns the complete state at one step of a run: every node with its last change, and the messages in transit. */
import { type momentsOf, protocolOf } from "../../../../src/experiment/recording.ts";
import type { Scenes } from "../../../../src/experiment/scene.ts";
import { arrangementOf, protocolNamed } from "../../../../src/protocols/index.ts";
import { labelOf, nameOf } from "../../../../src/trace/log.ts";
import { messageShown } from "../../../../src/trace/presented.ts";
import type { Look, LookNode, ShownRun } from "./answers.ts";
import type { Run } from "./runs.ts";
import { workAt } from "./work.ts";

export type Moments = ReturnType<typeof momentsOf>;

/** Returns the state at a step. @param step −1 is before the first step */
export function lookAt(
  { trace }: Run,
  { steps, drawing, family }: Pick<ShownRun, "steps" | "drawing" | "family">,
  step: number,
  { moments, scenes }: { readonly moments: Moments; readonly scenes: Scenes },
): Look {
  const { header, entries } = trace;
  const count = step < 0 ? 0 : (steps[step]?.entries ?? entries.length);
  const earlier = step < 1 ? 0 : (steps[step - 1]?.entries ?? 0);
  // Keep only the texts for the previous step, because the state objects continue to change.
  const before = new Map(
    moments.after(earlier).snapshot.nodes.map(({ id, state }) => [id, new Map(flat(state))] as const),
  );
  const now = moments.after(count);
  const protocol = protocolOf(header);
  const states = new Map(now.snapshot.nodes.map(({ id, state }) => [id, state]));
  const told = scenes.at(count);
  // Compute the view from the state, because not every change to a view is recorded.
  const seen = told.nodes.map((shown) => {
    const state = states.get(shown.node) ?? null;
    return state === null ? shown : { ...shown, view: protocol.view(state, shown.node) };
  });
  const scene = { ...told, nodes: seen };
  const { presentation } = protocolNamed(header.protocol);
  const hasStates = now.doubts.length === 0;
  const nodes = scene.nodes.map(({ node, condition, view }): LookNode => {
    const own = now.snapshot.nodes.find(({ id }) => id === node);
    const was = before.get(node) ?? new Map<string, string>();
    const fields = hasStates ? flat(own?.state ?? null) : [];
    return {
      node,
      condition,
      role: view?.role ?? "",
      fields: fields.map(([path, text]) => ({ path, text, changed: was.size > 0 && was.get(path) !== text })),
      timers: own?.timers.map(({ timer }) => timer) ?? [],
    };
  });
  const inFlight = now.snapshot.inFlight.map(({ id, from, to, message }) => {
    const { full, short } = nameOf(message);
    return {
      id,
      from,
      to,
      name: full,
      short: labelOf(messageShown(message, presentation.labels), MAX_LABEL),
      text: labelOf(message, MAX_TOLD),
      isCarrier: presentation.carriers.includes(short),
    };
  });
  const arrangement = arrangementOf(presentation, {
    scene,
    rows: drawing.nodes,
    state: (node) => (hasStates ? (states.get(node) ?? null) : null),
    options: header.options,
  });
  const messages = scenes.sentUntil(count);
  const work = workAt(
    { family, steps, drawing },
    { step, events: told.events, sentUntil: (entries) => scenes.sentUntil(entries) },
  );
  return { step, headline: presentation.headline(scene), messages, work, nodes, arrangement, inFlight, hasStates };
}

/** The maximum length of a text in characters. The first is for arrows, the second for lists. */
const [MAX_LABEL, MAX_TOLD] = [20, 40];
const MAX_FIELDS = 60;
const MAX_TEXT = 90;

/** Returns the fields by path. Small values are shown on one line. */
function flat(state: unknown, path = "", room: number = MAX_FIELDS): [string, string][] {
  if (state === null && path === "") return [];
  const text = textOf(state);
  const isPlain = typeof state !== "object" || state === null || Array.isArray(state);
  if (path !== "" && (isPlain || text.length <= 34))
    return [[path, text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text]];
  const fields: [string, string][] = [];
  for (const [name, value] of Object.entries(state as object)) {
    if (fields.length >= room) break;
    fields.push(...flat(value, path === "" ? name : `${path}.${name}`, room - fields.length));
  }
  return fields.slice(0, room);
}

/**
 * Formats a value as JSON without quotes and with spaces after commas. Long values are cut off slightly beyond the
 * length that is shown.
 */
function textOf(value: unknown): string {
  if (value === undefined) return "–";
  if (typeof value !== "object" || value === null)
    return JSON.stringify(value).replaceAll('"', "").replaceAll(",", ", ");
  const isList = Array.isArray(value);
  let text = "";
  for (const key in value) {
    const own = (value as Record<string, unknown>)[key];
    if (own === undefined && !isList) continue;
    const said = own === undefined ? "null" : textOf(own);
    text += `${text === "" ? "" : ", "}${isList ? "" : `${textOf(key)}:`}${said}`;
    if (text.length > MAX_TEXT) break;
  }
  return isList ? `[${text}]` : `{${text}}`;
}
