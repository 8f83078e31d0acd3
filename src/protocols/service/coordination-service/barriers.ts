/** Named barriers, at which sessions wait until the given number of parties has arrived. */

import { enter, keysOf, lookUp, strike, valuesOf } from "../keyspace/table.ts";
import type { Answer, BarrierOperation, Result, SessionId, WaitId } from "./operations.ts";
import { MAX_PARTIES, refuse } from "./operations.ts";
import { type Applying, type Barrier, type Data, nextRevision, sessionNamed } from "./state.ts";

export function applyToBarrier(on: Applying, session: SessionId, operation: BarrierOperation): Result {
  if (operation.type === "leave") {
    leave(on, operation.name, (arrival) => arrival.session === session && arrival.wait === operation.wait);
    return { type: "done" };
  }
  const { name, wait, parties } = operation;
  const { data, limits, tell } = on;
  if (parties < 1 || parties > Math.min(MAX_PARTIES, limits.maxWaiting))
    return refuse(
      "bad-operation",
      `expected from 1 to ${Math.min(MAX_PARTIES, limits.maxWaiting)} parties, got ${parties}`,
    );
  const known = lookUp(data.barriers, name);
  if (known !== null && known.parties !== parties)
    return refuse("in-use", `expected parties to be ${known.parties}, as in the existing barrier, got ${parties}`);
  if (known === null && data.barriers.size >= limits.maxNames)
    return refuse("too-many", `there are already ${limits.maxNames} barriers`);
  const barrier: Barrier = known ?? { parties, arrivals: [] };
  if (!barrier.arrivals.some((arrival) => arrival.session === session && arrival.wait === wait))
    barrier.arrivals.push({ session, wait });
  if (barrier.arrivals.length < parties) {
    enter(data.barriers, name, barrier);
    return { type: "waiting", ahead: parties - barrier.arrivals.length };
  }
  strike(data.barriers, name);
  const generation = nextRevision(data);
  tell({ type: "passed", name, generation, arrivals: barrier.arrivals });
  return { type: "passed", generation };
}

function leave({ data }: Applying, name: string, isGone: (arrival: Barrier["arrivals"][number]) => boolean): void {
  const barrier = lookUp(data.barriers, name);
  if (barrier === null) return;
  barrier.arrivals = barrier.arrivals.filter((arrival) => !isGone(arrival));
  if (barrier.arrivals.length === 0) strike(data.barriers, name);
}

/** Withdraws all arrivals by a session that has ended. */
export function leaveBarriers(on: Applying, session: SessionId): void {
  for (const name of keysOf(on.data.barriers)) leave(on, name, (arrival) => arrival.session === session);
}

/** Returns an arrival's state. */
export function arrivalIn(data: Data, name: string, session: SessionId, wait: WaitId): Answer {
  const arrivals = lookUp(data.barriers, name)?.arrivals ?? [];
  if (arrivals.some((arrival) => arrival.session === session && arrival.wait === wait))
    return { type: "arrival", state: "waiting" };
  return { type: "arrival", state: sessionNamed(data, session) === null ? "unknown" : "passed" };
}

/** Returns whether the session is waiting at any barrier. */
export const waitsAtBarrier = ({ barriers }: Data, session: SessionId): boolean =>
  valuesOf(barriers).some(({ arrivals }) => arrivals.some((arrival) => arrival.session === session));
