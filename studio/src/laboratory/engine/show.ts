/**
 * Converts a run into the form that the page shows: the drawing, descriptions of its steps, lasting states, properties
 * and costs.
 */
import { pathOf } from "../../../../src/core/wrapping.ts";
import { checkedWithin } from "../../../../src/experiment/recording.ts";
import { asShown } from "../../../../src/experiment/scene.ts";
import { protocolNamed } from "../../../../src/protocols/index.ts";
import { messageInksOf } from "../../../../src/protocols/message-inks.ts";
import type { TraceEntry } from "../../../../src/trace/entry.ts";
import { beginningOf, excerptOf, originOf } from "../../../../src/trace/excerpt.ts";
import { faultText } from "../../../../src/trace/link-model.ts";
import { actionText } from "../../../../src/trace/log.ts";
import type { ShownProperty, ShownRun, ShownStep } from "./answers.ts";
import { drawingOf } from "./drawing.ts";
import { CHECKS_MS, MAX_DRAWN } from "./limits.ts";
import type { Run } from "./runs.ts";

/** The maximum length of a line in characters. A message may contain its sender's entire state. */
const MAX_LINE = 240;
const shortened = (line: string): string => (line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line);

const lineOf = (entry: TraceEntry): string =>
  actionText(entry.kind === "fault" ? { ...entry, what: faultText(entry.what) } : entry);

/** Converts a run. @param onChecked called periodically with the number of entries checked so far */
export function shown(run: Run, onChecked: (entries: number) => void = () => {}): ShownRun {
  const { trace } = run;
  const { header } = trace;
  const { presentation, family } = protocolNamed(header.protocol);
  const small = asShown(trace);
  const isChecked = header.madeBy === "checker";
  const excerpt = beginningOf(excerptOf(small), MAX_DRAWN);
  const inks = messageInksOf(header.protocol);
  const origin = originOf(header, trace.entries);
  const steps = excerpt.steps.map(({ node, indices }): ShownStep => {
    const own = indices.map((index) => small.kept[index] as number);
    const first = trace.entries[own[0] ?? 0] as TraceEntry;
    return {
      node,
      at: first.at - origin,
      lines: own.map((index) => shortened(lineOf(trace.entries[index] as TraceEntry))),
      entries: own.reduce((most, index) => Math.max(most, index), 0) + 1,
    };
  });
  return {
    title: run.title,
    about: run.about,
    protocol: header.protocol,
    family: family.name,
    topology: presentation.topology,
    verb: family.ask(header.nodes[0] ?? 0, 1) === null ? null : family.verb,
    unit: isChecked ? "move" : "ms",
    drawing: drawingOf(excerpt, presentation, inks, run.networks),
    steps,
    properties: propertiesOf(run, steps, onChecked),
    cost: costOf(run),
    entries: trace.entries.length,
    folded: trace.entries.length - small.kept.length,
    beyond: small.kept.length - excerpt.entries.length,
    forks: run.forks,
    omissions: run.omissions,
    part: run.part,
    words: run.words,
  };
}

function costOf({ trace, formulas }: Run): ShownRun["cost"] {
  const byType = new Map<string, number>();
  let total = 0;
  for (const entry of trace.entries) {
    if (entry.kind !== "send" || entry.to === entry.node) continue;
    const name = pathOf(entry.message).at(-1) ?? "";
    byType.set(name, (byType.get(name) ?? 0) + 1);
    total++;
  }
  return { total, byType: Object.fromEntries(byType), formulas };
}

function propertiesOf(
  { trace, verdicts }: Run,
  steps: readonly ShownStep[],
  onChecked: (entries: number) => void,
): ShownProperty[] {
  // The simulator has already checked the properties. Without a violation, the step is not needed.
  if (verdicts.length > 0 && !verdicts.some(({ verdict }) => verdict === "violated"))
    return verdicts.map(({ name, claim, verdict, why }) => ({ name, claim, verdict, why, step: null }));
  const end = performance.now() + CHECKS_MS;
  const { findings } = checkedWithin(trace, (entries) => {
    onChecked(entries);
    return performance.now() < end;
  });
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
