/**
 * A mutual exclusion with a user at every node and a failure detector that tells it who is suspected and who is back.
 */
import { type Assembly, assemble } from "../../../core/assemble.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat } from "../../membership/heartbeat.ts";
import { requireParts } from "../../options.ts";
import { type Mutex, type MutexUser, mutexUser, tokensGrow, type UsedMutexOptions, userWires } from "./user.ts";

export type MonitoredMutex<M extends Mutex> = Assembly<{ user: MutexUser; mutex: M; detector: Heartbeat }>;

export interface MonitoredMutexOptions<O> extends UsedMutexOptions<O> {
  detector?: Partial<HeartbeatOptions>;
}

const BEAT = "detector.beat";

export function monitoredMutex<M extends Mutex, O extends object>(
  mutex: (options?: O) => Protocol<M>,
  options: MonitoredMutexOptions<O> = {},
): Protocol<MonitoredMutex<M>> {
  const parts = { user: mutexUser(options.user), mutex: mutex(options.mutex), detector: heartbeat(options.detector) };
  const { name } = parts.mutex;
  requireParts(name, options, Object.keys(parts));
  const assembly = assemble<{ user: MutexUser; mutex: Mutex; detector: Heartbeat }>(
    name,
    parts as typeof parts & { mutex: Protocol<Mutex> },
    {
      ...userWires,
      detector: {
        suspected: ({ node }, give) => give("mutex", { type: "suspect", node }),
        restored: ({ node }, give) => give("mutex", { type: "restore", node }),
      },
    },
    { face: "mutex" },
  ) as unknown as Protocol<MonitoredMutex<M>>;
  // The detector goes on beating, and whoever waits for somebody who is down may be told so.
  const properties = assembly.properties.map((property) =>
    property.when === "quiescent"
      ? { ...property, pendingTimers: [...(property.pendingTimers ?? []), BEAT] }
      : property,
  );
  return { ...assembly, properties: [...properties, tokensGrow] };
}
