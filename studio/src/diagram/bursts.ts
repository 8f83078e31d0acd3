/** Bursts: messages so close together that they can be distinguished only when zoomed in. */
import type { Mark } from "../history/chronicle.ts";
import type { Life } from "../history/life.ts";
import { topicOfEvent } from "../history/phrase-book.ts";
import { type Burst, type Message, momentOf } from "./picture.ts";

/** Groups messages that are at most `gapMs` apart, in chronological order. */
function burstsOf<M extends Message>(messages: readonly M[], gapMs: number): Burst<M>[] {
  const inOrder = messages.toSorted((a, b) => momentOf(a) - momentOf(b));
  const bursts: { from: number; to: number; messages: M[] }[] = [];
  for (const message of inOrder) {
    const last = bursts.at(-1);
    if (last !== undefined && momentOf(message) - last.to <= gapMs) {
      last.messages.push(message);
      last.to = Math.max(last.to, arrivalOf(message));
    } else {
      bursts.push({ from: momentOf(message), to: arrivalOf(message), messages: [message] });
    }
  }
  return bursts;
}

/** Returns when a message arrived. A loss may be noticed long after the exchange, so it does not extend the burst. */
function arrivalOf(message: Message): number {
  return Math.max(momentOf(message), message.receivedAt ?? 0);
}

/**
 * Messages no further apart than this belong to the same burst. It is longer than the time that an election waits for
 * answers.
 */
const TURN_MS = 400;

/**
 * Returns the last burst that contains several messages, or the last single message if there is none. Null without
 * messages.
 */
export function lastBurst<M extends Message>(messages: readonly M[]): Burst<M> | null {
  const bursts = burstsOf(messages, TURN_MS);
  return bursts.findLast((burst) => burst.messages.length > 1) ?? bursts.at(-1) ?? null;
}

/** An event this close to the beginning of a burst may have caused it. */
const CAUSE_MS = 1_000;

interface Causes {
  readonly marks: readonly Mark[];
  readonly lives: ReadonlyMap<unknown, Life>;
}

/**
 * Returns when to start showing a burst: at the crash, pause, start or suspicion shortly before it, if any, or else at
 * its beginning.
 */
export function causeOf({ from }: Burst, { marks, lives }: Causes): number {
  const turns = [...lives.values()].flatMap((life) => {
    const stretches = life.stretches();
    return stretches.filter((each, index) => index > 0 && each.condition !== stretches[index - 1]?.condition);
  });
  const suspicions = marks.filter(({ content }) => content !== null && topicOfEvent(content) === "suspicion");
  const moments = [...turns.map((turn) => turn.from), ...suspicions.map(({ at }) => at)];
  return Math.min(from, ...moments.filter((at) => at >= from - CAUSE_MS));
}

/** Returns the subject of a burst: the part that most of its messages belong to. */
export function subjectOf(burst: Burst): string | null {
  const counts = new Map<string, number>();
  for (const { name } of burst.messages)
    if (name.part !== null) counts.set(name.part, (counts.get(name.part) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
