/** A run as the page shows it: the drawing, its steps in words, what lasts, properties and costs. */
import { pathOf } from "../../../../src/core/wrapping.ts";
import { replayed } from "../../../../src/experiment/recording.ts";
import { asShown } from "../../../../src/experiment/showing.ts";
import { protocolNamed } from "../../../../src/protocols/index.ts";
import { Inkwell } from "../../../../src/trace/diagram/ink.ts";
import { spansOf } from "../../../../src/trace/diagram/spans.ts";
import type { TraceEntry } from "../../../../src/trace/entry.ts";
import { beginningOf, excerptOf, originOf } from "../../../../src/trace/excerpt.ts";
import { actionText } from "../../../../src/trace/log.ts";
import type { Picture } from "../../../../src/trace/picture/layout.ts";
import { drawEndless } from "../../../../src/trace/picture/svg.ts";
import type { Presented } from "../../../../src/trace/presented.ts";
import { stepsOf } from "../../../../src/trace/steps.ts";
import type { ShownProperty, ShownRun, ShownSpan, ShownStep } from "./answers.ts";
import type { Run } from "./runs.ts";

/** More takes long to lay out, and nobody would scroll through it. */
const MAX_ENTRIES = 900;

export function shown(run: Run): ShownRun {
  const { trace } = run;
  const { header } = trace;
  const { presentation, family } = protocolNamed(header.protocol);
  const small = asShown(trace);
  const isChecked = header.madeBy === "checker";
  const whole = excerptOf(isChecked ? small : byEvents(small));
  const excerpt = beginningOf(whole, MAX_ENTRIES);
  const { picture, keys, ...drawing } = drawEndless(
    excerpt,
    "lab-hatch",
    new Inkwell(typesIn(trace.entries, presentation.periodic)),
  );
  const laneOf = new Map(picture.lanes.map(({ node, y }) => [node, y]));
  const origin = originOf(header, trace.entries);
  const steps = excerpt.steps.map(({ node, indices }, place): ShownStep => {
    const own = indices.map((index) => small.kept[index] as number);
    const first = trace.entries[own[0] ?? 0] as TraceEntry;
    return {
      x: picture.steps[place]?.x ?? 0,
      y: laneOf.get(node) ?? 0,
      node,
      at: first.at - origin,
      lines: own.map((index) => actionText(trace.entries[index] as TraceEntry)),
      entries: Math.max(...own) + 1,
    };
  });
  return {
    ...drawing,
    title: run.title,
    about: run.about,
    protocol: header.protocol,
    family: family.name,
    unit: isChecked ? "move" : "ms",
    lanes: picture.lanes,
    steps,
    spans: spansIn(picture, drawing.left + drawing.width, presentation.span),
    keys,
    properties: propertiesOf(run, steps),
    cost: costOf(run),
    entries: trace.entries.length,
    folded: trace.entries.length - small.kept.length,
    beyond: small.kept.length - excerpt.entries.length,
    forks: run.forks,
    words: run.words,
  };
}

/** In the order in which they get their inks: what only keeps coming comes last. */
function typesIn(entries: readonly TraceEntry[], periodic: readonly string[]): string[] {
  const paths = entries.flatMap((entry) => (entry.kind === "send" ? [pathOf(entry.message)] : []));
  const types = new Map(paths.map((path) => [path.join("."), periodic.includes(path.at(-1) ?? "")]));
  const named = [...types.keys()].toSorted();
  return [...named.filter((name) => types.get(name) !== true), ...named.filter((name) => types.get(name) === true)];
}

/** The axis counts steps instead of milliseconds. All nodes that begin do so at once. */
function byEvents(trace: Presented): Presented {
  const rankOf = new Map<number, number>();
  let [rank, wasBeginning] = [0, true];
  for (const { indices } of stepsOf(trace.entries)) {
    const isBeginning = indices.every((index) => BEGINNING.has(trace.entries[index]?.kind ?? ""));
    if (!(isBeginning && wasBeginning)) rank++;
    wasBeginning &&= isBeginning;
    for (const index of indices) rankOf.set(index, rank);
  }
  const entries = trace.entries.map((entry, index) => ({ ...entry, at: rankOf.get(index) ?? rank }));
  return { ...trace, header: { ...trace.header, madeBy: "checker" }, entries };
}

const BEGINNING: ReadonlySet<string> = new Set(["start", "view"]);

function spansIn(
  { lanes, steps }: Picture,
  end: number,
  span: ReturnType<typeof protocolNamed>["presentation"]["span"],
): ShownSpan[] {
  return lanes.flatMap(({ node, y }) => {
    const own = steps.filter(({ step }) => step.node === node);
    const changes = own.map(({ x, after }) => {
      const found = after.condition === "down" || after.view === null ? null : span(after.view, node);
      return { at: x, value: found };
    });
    const isSame = (a: (typeof changes)[number]["value"], b: typeof a) => a?.kind === b?.kind && a?.words === b?.words;
    return spansOf(changes, end, isSame).flatMap(({ from: x1, to: x2, value }) =>
      value === null ? [] : [{ x1, x2, y, ...value }],
    );
  });
}

function costOf({ trace, formulas }: Run): ShownRun["cost"] {
  const byType: Record<string, number> = {};
  let total = 0;
  for (const entry of trace.entries) {
    if (entry.kind !== "send" || entry.to === entry.node) continue;
    const name = pathOf(entry.message).at(-1) ?? "";
    byType[name] = (byType[name] ?? 0) + 1;
    total++;
  }
  return { total, byType, formulas };
}

function propertiesOf({ trace, verdicts }: Run, steps: readonly ShownStep[]): ShownProperty[] {
  const { findings } = replayed(trace, undefined);
  const { violation } = trace.header;
  return findings.map(({ property: { name, claim }, verdict, entry, why }): ShownProperty => {
    const said = verdicts.find((each) => each.name === name);
    const isBroken = verdict === "violated" || said?.verdict === "violated" || violation?.property === name;
    const place = isBroken ? steps.findIndex(({ entries }) => entries > (entry ?? trace.entries.length - 1)) : -1;
    return {
      name,
      claim,
      verdict: isBroken ? "violated" : (said?.verdict ?? verdict),
      why: said?.why ?? why,
      step: isBroken ? (place === -1 ? steps.length - 1 : place) : null,
    };
  });
}
