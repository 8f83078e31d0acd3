/**
 * Computes the cost in messages: either the cost of the last election, or the mean per entry, multicast or decision
 * over the last minute.
 */
import type { Presented } from "../../../src/cluster/feed.ts";
import { momentOf } from "../diagram/picture.ts";
import type { Chronicle, Mark, Message } from "../history/chronicle.ts";
import type { LastingState } from "../history/life.ts";
import { electionIn, merged, type Period, type Work } from "../work.ts";

type Remembered = Pick<Chronicle, "messages" | "marks" | "lives">;

/**
 * Returns the cost, or null if there is nothing to count or nothing has happened yet. Chatter, such as heartbeats, is
 * not counted.
 */
export function workIn(name: Presented["work"], remembered: Remembered): Work | null {
  if (name === null) return null;
  const messages = remembered.messages.filter(({ from, to }) => from !== to);
  if (name === "election") return lastElection(remembered, messages);
  if (name === "entry") return entries(remembered, messages);
  // Count only as far back as both marks and messages are remembered. A command comes before the messages that it
  // causes.
  const [first] = messages;
  const since = first === undefined ? -Infinity : momentOf(first) - BEFORE_MS;
  const count = countOf[name](remembered.marks.filter(({ at }) => at >= since));
  return count === 0 ? null : { name, count, messages: messages.length / count, isOver: true };
}

const BEFORE_MS = 1_000;

const emitted = (marks: readonly Mark[], type: string) =>
  marks.filter(({ kind, name }) => kind === "event" && name.short === type);

const countOf: Readonly<Record<"multicast" | "decision", (marks: readonly Mark[]) => number>> = {
  multicast: (marks) => marks.filter(({ kind, name }) => kind === "command" && name.short === "send").length,
  decision(marks) {
    const byNode = new Map<number, number>();
    for (const { node } of emitted(marks, "decided")) byNode.set(node, (byNode.get(node) ?? 0) + 1);
    return Math.max(0, ...byNode.values());
  },
};

/**
 * Returns the cost of entries. Messages sent while no node is waiting or inside, such as a circulating token, are not
 * counted.
 */
function entries({ lives, marks }: Remembered, messages: readonly Message[]): Work | null {
  const busy = periods(lives, ({ kind, from, to }) => (kind === "waiting" || kind === "inside" ? { from, to } : null));
  const count = emitted(marks, "entered").length;
  if (count === 0) return null;
  const own = messages.filter(({ sentAt }) => busy.some((each) => isWithin(each, sentAt)));
  const isOver = busy.every(({ to }) => to < Infinity);
  return { name: "entry", count, messages: own.length / count, isOver };
}

/**
 * The tolerance for times. Clocks differ between machines, and a step's messages are stamped slightly before its
 * effects.
 */
const SKEW_MS = 5;

const isWithin = ({ from, to }: Period, at: number | null): boolean => at !== null && at >= from - SKEW_MS && at <= to;

/** Returns the merged periods that `pick` selects from the states of all nodes. */
function periods(lives: Remembered["lives"], pick: (state: LastingState) => Period | null): readonly Period[] {
  const all = [...lives.values()].flatMap((life) => life.states().flatMap((state) => pick(state) ?? []));
  return merged(all, SKEW_MS);
}

function lastElection({ lives }: Remembered, messages: readonly Message[]): Work | null {
  // Skip states that are older than the page's memory, because their beginning is unknown.
  const elections = periods(lives, (state) => (state.from === -Infinity ? null : electionIn(state)));
  const last = elections.at(-1);
  if (last === undefined) return null;
  const own = messages.filter(({ sentAt }) => isWithin(last, sentAt));
  return { name: "election", count: elections.length, messages: own.length, isOver: last.to < Infinity };
}
