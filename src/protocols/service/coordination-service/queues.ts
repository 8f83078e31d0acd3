/**
 * Named queues. At most one session has an item at a time, and the oldest item goes to the session that has waited
 * longest. When a session ends, its unfinished items return to the front of the queue. The next session that takes such
 * an item gets a higher token.
 */

import { enter, keysOf, lookUp, strike, valuesOf } from "../keyspace/table.ts";
import { bytesOf } from "../keyspace/text-size.ts";
import type { Answer, QueueOperation, Result, SessionId } from "./operations.ts";
import { refuse } from "./operations.ts";
import {
  type Applying,
  type Data,
  type Item,
  nextRevision,
  type Queue,
  refuseFull,
  sizeOf,
  type Taken,
} from "./state.ts";

/** The overhead per item, in addition to its value. */
const ITEM_BYTES = 96;

const itemBytes = ({ value }: Item): number => ITEM_BYTES + bytesOf(value);

export function applyToQueue(on: Applying, session: SessionId, operation: QueueOperation): Result {
  const { data } = on;
  const { name } = operation;
  const queue = lookUp(data.queues, name) ?? { items: [], taken: [], takers: [] };
  const isNew = lookUp(data.queues, name) === null;
  if (isNew && data.queues.size >= on.limits.maxNames)
    return refuse("too-many", `there are already ${on.limits.maxNames} queues`);
  switch (operation.type) {
    case "enqueue":
      return enqueue(on, name, queue, operation.value);
    case "take":
      return take(on, name, queue, session, operation.wait);
    case "stopTaking": {
      const { wait } = operation;
      const isMine = (other: { session: SessionId; wait: number }) => other.session === session && other.wait === wait;
      queue.takers = queue.takers.filter((taker) => !isMine(taker));
      putBack(queue, queue.taken.filter(isMine));
      serve(on, name, queue);
      return { type: "done" };
    }
    case "finish":
    case "giveBack": {
      const taken = queue.taken.find((item) => item.token === operation.token && item.session === session);
      if (taken === undefined)
        return refuse("not-held", `this session holds no item of it with token ${operation.token}`);
      if (operation.type === "giveBack") putBack(queue, [taken]);
      else {
        queue.taken = queue.taken.filter((item) => item !== taken);
        data.bytes -= itemBytes(taken);
      }
      serve(on, name, queue);
      return { type: "done" };
    }
  }
}

function enqueue(on: Applying, name: string, queue: Queue, value: string): Result {
  const { data, limits } = on;
  if (queue.items.length + queue.taken.length >= limits.maxItems)
    return refuse("too-many", `it already contains ${limits.maxItems} items`);
  const size = itemBytes({ id: 0, value });
  if (sizeOf(data) + size > limits.maxBytes) return refuseFull(on);
  data.bytes += size;
  const id = nextRevision(data);
  queue.items.push({ id, value });
  serve(on, name, queue);
  return { type: "enqueued", item: id };
}

function take(on: Applying, name: string, queue: Queue, session: SessionId, wait: number): Result {
  const isMine = (other: { session: SessionId; wait: number }) => other.session === session && other.wait === wait;
  if (!queue.taken.some(isMine) && !queue.takers.some(isMine)) {
    if (queue.takers.length + queue.taken.length >= on.limits.maxWaiting)
      return refuse("too-many", `${on.limits.maxWaiting} calls already wait for or hold its items`);
    queue.takers.push({ session, wait });
    serve(on, name, queue);
  }
  const taken = queue.taken.find(isMine);
  if (taken !== undefined) return { type: "item", token: taken.token, value: taken.value };
  return { type: "waiting", ahead: queue.takers.findIndex(isMine) };
}

/** Puts items back at the front of the queue, in their original order. */
function putBack(queue: Queue, items: readonly Taken[]): void {
  if (items.length === 0) return;
  queue.taken = queue.taken.filter((item) => !items.includes(item));
  queue.items.unshift(...items.map(({ id, value }) => ({ id, value })).sort((a, b) => a.id - b.id));
}

/** Gives items to waiting sessions. Deletes the queue if it has neither items nor waiters. */
function serve({ data, tell }: Applying, name: string, queue: Queue): void {
  while (queue.items.length > 0 && queue.takers.length > 0) {
    const item = queue.items.shift() as Item;
    const { session, wait } = queue.takers.shift() as Queue["takers"][number];
    const token = nextRevision(data);
    queue.taken.push({ ...item, session, wait, token });
    tell({ type: "item", name, session, wait, token, value: item.value });
  }
  const isEmpty = queue.items.length === 0 && queue.taken.length === 0 && queue.takers.length === 0;
  if (isEmpty) strike(data.queues, name);
  else enter(data.queues, name, queue);
}

/** Gives back all items that an ended session had taken, and withdraws its requests. */
export function releaseItems(on: Applying, session: SessionId): void {
  for (const name of keysOf(on.data.queues)) {
    const queue = lookUp(on.data.queues, name) as Queue;
    if (!isConcerned(queue, session)) continue;
    queue.takers = queue.takers.filter((taker) => taker.session !== session);
    putBack(
      queue,
      queue.taken.filter((item) => item.session === session),
    );
    serve(on, name, queue);
  }
}

const isConcerned = ({ taken, takers }: Queue, session: SessionId): boolean =>
  taken.some((item) => item.session === session) || takers.some((taker) => taker.session === session);

/** Returns whether the session has an item or is waiting for one. */
export const holdsItems = ({ queues }: Data, session: SessionId): boolean =>
  valuesOf(queues).some((queue) => isConcerned(queue, session));

/** Returns a queue's size. */
export function backlogOf(data: Data, name: string): Answer {
  const queue = lookUp(data.queues, name);
  const [items, taken, waiting] = [queue?.items, queue?.taken, queue?.takers].map((list) => list?.length ?? 0);
  return { type: "backlog", items: items ?? 0, taken: taken ?? 0, waiting: waiting ?? 0 };
}
