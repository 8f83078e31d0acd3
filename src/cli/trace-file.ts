/** A simulated run as a file: its trace, or its picture. */
import { closeSync, openSync, writeSync } from "node:fs";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Scenario } from "../experiment/scenario/index.ts";
import { labelled } from "../experiment/scenario/labels.ts";
import type { PropertyVerdict } from "../experiment/verdicts.ts";
import { vectorClocks } from "../trace/causality.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { excerptOf } from "../trace/excerpt.ts";
import { traceLines } from "../trace/file.ts";
import type { TraceHeader } from "../trace/header.ts";
import { drawSvg } from "../trace/picture/svg.ts";

/** What ran. */
export interface Simulated {
  readonly scenario: Scenario;
  /** With the order of the ring, if there is one. */
  readonly options: object;
  readonly nodes: readonly NodeId[];
  readonly form: TraceHeader["form"];
  readonly properties: readonly PropertyVerdict[];
}

function headerOf({ scenario, options, nodes, form, properties }: Simulated): TraceHeader {
  const violated = properties
    .filter(({ verdict }) => verdict === "violated")
    .toSorted((a, b) => Number(a.at) - Number(b.at))[0];
  return {
    kind: "trace",
    version: 1,
    madeBy: "simulator",
    protocol: scenario.protocol,
    form,
    variant: scenario.variant ?? null,
    options,
    nodes: nodes.toSorted((a, b) => a - b),
    seed: scenario.seed,
    violation: violated === undefined ? null : { property: violated.name, claim: violated.claim, loopFrom: null },
  };
}

/** @throws UsageError if the file cannot be written. */
export function writeTraceFile(file: string, simulated: Simulated, entries: readonly TraceEntry[]): void {
  const lines = traceLines(headerOf(simulated));
  writeParts(file, "--trace", function* parts() {
    yield lines.header;
    for (let at = 0; at < entries.length; at += LINES_AT_ONCE)
      yield entries
        .slice(at, at + LINES_AT_ONCE)
        .map((entry) => lines.entry(entry))
        .join("");
  });
}

/** @throws UsageError if the file cannot be written. */
export function writeSvgFile(file: string, simulated: Simulated, entries: readonly TraceEntry[]): void {
  const named = labelled(entries, simulated.scenario);
  const trace = { header: headerOf(simulated), entries: named, clocks: vectorClocks(entries) };
  writeParts(file, "--svg", () => [drawSvg(excerptOf(trace))]);
}

const LINES_AT_ONCE = 10_000;

function writeParts(file: string, word: string, parts: () => Iterable<string>): void {
  const open = opened(file, word);
  try {
    for (const part of parts()) writeSync(open, part);
  } finally {
    closeSync(open);
  }
}

function opened(file: string, word: string): number {
  try {
    return openSync(file, "w");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError("bad-argument", `${unexpected(word, "a file that can be written", file)} (${code})`);
  }
}
