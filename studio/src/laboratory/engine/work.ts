/** What has been done so far, and what it has cost: each election by itself; of entries, messages and decisions the mean. */
import { unwrapped } from "../../../../src/core/wrapping.ts";
import type { Scene } from "../../../../src/protocols/index.ts";
import type { ShownRun, Work } from "./answers.ts";

interface Moment {
  readonly step: number;
  readonly events: Scene["events"];
  /** Messages among the first so many entries. */
  sentUntil(entries: number): number;
}

type Told = Pick<ShownRun, "family" | "steps" | "drawing">;

/** Null where there is nothing to count, or nothing has been done. */
export function workAt(run: Told, { step, events, sentUntil }: Moment): Work | null {
  const entries = (at: number): number => (at < 0 ? 0 : (run.steps[at]?.entries ?? 0));
  const sent = sentUntil(entries(step));
  const counts = (type: string): number => events.filter(({ event }) => unwrapped(event).type === type).length;
  const each = (name: Work["name"], count: number, isOver = true): Work | null =>
    count === 0 ? null : { name, count, messages: sent / count, isOver };
  switch (run.family) {
    case "election": {
      const costOf = ({ from, to }: Election): number =>
        sentUntil(entries(Math.min(step, to ?? step))) - sentUntil(entries(from - 1));
      // Who leads from the beginning has been elected before the run.
      const begun = electionsIn(run).filter((each) => each.from <= step && (each.to === null || costOf(each) > 0));
      const last = begun.at(-1);
      if (last === undefined) return null;
      return {
        name: "election",
        count: begun.length,
        messages: costOf(last),
        isOver: last.to !== null && last.to <= step,
      };
    }
    case "mutual exclusion":
      // Those that are asked for have their share of the messages.
      return each("entry", Math.max(counts("needed"), counts("entered")), counts("exited") >= counts("needed"));
    case "multicast":
      return each("multicast", counts("said"));
    default: {
      const decided = new Map<number, number>();
      for (const { node, event } of events)
        if (unwrapped(event).type === "decided") decided.set(node, (decided.get(node) ?? 0) + 1);
      return run.family === "consensus" ? each("decision", Math.max(0, ...decided.values())) : null;
    }
  }
}

interface Election {
  readonly from: number;
  /** The step in which it ended for the last node; null while it lasts. */
  readonly to: number | null;
}

/** Stretches in which somebody holds one, or begins to lead without one. What ends one and begins the next in one step is one. */
function electionsIn({ drawing }: Pick<ShownRun, "drawing">): Election[] {
  const spans = drawing.states
    .flatMap(({ kind, from, to }) =>
      kind === "electing" ? [{ from: from ?? 0, to }] : kind === "leading" && from !== null ? [{ from, to: from }] : [],
    )
    .toSorted((a, b) => a.from - b.from);
  const found: Election[] = [];
  for (const span of spans) {
    const last = found.at(-1);
    if (last !== undefined && (last.to === null || span.from <= last.to))
      found[found.length - 1] = {
        from: last.from,
        to: last.to === null || span.to === null ? null : Math.max(last.to, span.to),
      };
    else found.push(span);
  }
  return found;
}
