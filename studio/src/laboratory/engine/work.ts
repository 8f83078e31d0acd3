/** Computes the cost so far: either the cost of the last election, or the mean per entry, multicast or decision. */
import { unwrapped } from "../../../../src/core/wrapping.ts";
import type { Scene } from "../../../../src/protocols/index.ts";
import { electionIn, merged, type Period, type Work } from "../../work.ts";
import type { ShownRun } from "./answers.ts";

interface Moment {
  readonly step: number;
  readonly events: Scene["events"];
  /** Returns the number of messages sent in the first `entries` entries. */
  sentUntil(entries: number): number;
}

type Told = Pick<ShownRun, "family" | "steps" | "drawing">;

/** Returns the cost at a moment, or null if there is nothing to count or nothing has happened yet. */
export function workAt(run: Told, { step, events, sentUntil }: Moment): Work | null {
  const entries = (at: number): number => (at < 0 ? 0 : (run.steps[at]?.entries ?? 0));
  const sent = sentUntil(entries(step));
  const counts = (type: string): number => events.filter(({ event }) => unwrapped(event).type === type).length;
  const each = (name: Work["name"], count: number, isOver = true): Work | null =>
    count === 0 ? null : { name, count, messages: sent / count, isOver };
  switch (run.family) {
    case "election": {
      const costOf = ({ from, to }: Period): number =>
        sentUntil(entries(Math.min(step, to))) - sentUntil(entries(from - 1));
      // Nodes that lead from the beginning were elected before the run.
      const begun = electionsIn(run).filter((each) => each.from <= step && (each.to === Infinity || costOf(each) > 0));
      const last = begun.at(-1);
      if (last === undefined) return null;
      return {
        name: "election",
        count: begun.length,
        messages: costOf(last),
        isOver: last.to <= step,
      };
    }
    case "mutual exclusion":
      // Count pending entries too, because they have caused messages.
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

/** Returns the periods during which a node is holding an election, or begins to lead without one. */
function electionsIn({ drawing }: Pick<ShownRun, "drawing">): Period[] {
  const periods = drawing.states.map(({ kind, from, to }) =>
    electionIn({ kind, from: from ?? Number.NEGATIVE_INFINITY, to: to ?? Number.POSITIVE_INFINITY }),
  );
  return merged(periods.filter((period) => period !== null));
}
