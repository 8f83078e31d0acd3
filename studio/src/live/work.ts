/** What the last piece of work has cost: of an election its own messages, of entries, messages and decisions the mean of a minute. */
import type { Presented } from "../../../src/cluster/feed.ts";
import { momentOf } from "../diagram/picture.ts";
import type { Chronicle, Mark, Message } from "../history/chronicle.ts";
import type { LastingState } from "../history/life.ts";
import { electionIn, merged, type Period, type Work } from "../work.ts";

type Remembered = Pick<Chronicle, "messages" | "marks" | "lives">;

/** Null where there is nothing to count, or nothing has been done. What keeps coming anyway, such as heartbeats, is not counted. */
export function workIn(name: Presented["work"], remembered: Remembered): Work | null {
  if (name === null) return null;
  const messages = remembered.messages.filter(({ from, to }) => from !== to);
  if (name === "election") return lastElection(remembered, messages);
  if (name === "entry") return entries(remembered, messages);
  // As far as both are remembered; a command stands before the messages that follow from it.
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

/** What is sent while nobody waits and nobody is inside, as where a token goes round, is nobody's entry. */
function entries({ lives, marks }: Remembered, messages: readonly Message[]): Work | null {
  const busy = periods(lives, ({ kind, from, to }) => (kind === "waiting" || kind === "inside" ? { from, to } : null));
  const count = emitted(marks, "entered").length;
  if (count === 0) return null;
  const own = messages.filter(({ sentAt }) => busy.some((each) => isWithin(each, sentAt)));
  const isOver = busy.every(({ to }) => to < Infinity);
  return { name: "entry", count, messages: own.length / count, isOver };
}

/** Clocks of different machines are this far apart, and what a step sends is stamped a little earlier than what it leads to. */
const SKEW_MS = 5;

const isWithin = ({ from, to }: Period, at: number | null): boolean => at !== null && at >= from - SKEW_MS && at <= to;

/** Periods in which nodes were in such states. */
function periods(lives: Remembered["lives"], pick: (state: LastingState) => Period | null): readonly Period[] {
  const all = [...lives.values()].flatMap((life) => life.states().flatMap((state) => pick(state) ?? []));
  return merged(all, SKEW_MS);
}

function lastElection({ lives }: Remembered, messages: readonly Message[]): Work | null {
  // The page does not remember the beginning of states that are older than what it remembers.
  const elections = periods(lives, (state) => (state.from === -Infinity ? null : electionIn(state)));
  const last = elections.at(-1);
  if (last === undefined) return null;
  const own = messages.filter(({ sentAt }) => isWithin(last, sentAt));
  return { name: "election", count: elections.length, messages: own.length, isOver: last.to < Infinity };
}
