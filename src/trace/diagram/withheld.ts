/** Requests that a node has received and not answered yet, as what it holds back: in some algorithms they are the queue. */
import type { NodeId } from "../../core/protocol.ts";
import type { TraceEntry } from "../entry.ts";
import { nameOf } from "../naming.ts";
import type { Step } from "../steps.ts";
import { HoldBackQueue, ROWS, type Track } from "./held-back.ts";

/** @param answers by a request's short name that of its answer. Places of tracks are those of the steps. */
export function withheldIn(
  steps: readonly Pick<Step, "node" | "indices">[],
  entries: readonly TraceEntry[],
  answers: Readonly<Record<string, string>>,
): Track[] {
  const answerNames = new Set(Object.values(answers));
  if (answerNames.size === 0) return [];
  const nodes = new Map<NodeId, { asking: readonly NodeId[]; readonly queue: HoldBackQueue }>();
  for (const [place, { node, indices }] of steps.entries()) {
    const own = indices.map((index) => entries[index] as TraceEntry);
    const known = nodes.get(node) ?? { asking: [], queue: new HoldBackQueue(node, ROWS) };
    nodes.set(node, known);
    const asked = own.flatMap((entry) =>
      entry.kind === "receive" && Object.hasOwn(answers, nameOf(entry.message).short) ? [entry.from] : [],
    );
    const answered = new Set(
      own.flatMap((entry) => (entry.kind === "send" && answerNames.has(nameOf(entry.message).short) ? [entry.to] : [])),
    );
    const isDown = own.some(({ kind }) => kind === "crash");
    known.asking = isDown ? [] : [...new Set([...known.asking, ...asked])].filter((each) => !answered.has(each));
    known.queue.become(
      known.asking.map((each) => `${each}’s request`),
      place,
    );
  }
  return [...nodes.values()].flatMap(({ queue }) => queue.end());
}
