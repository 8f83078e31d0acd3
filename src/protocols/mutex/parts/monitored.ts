/**
 * A mutual exclusion with a workload at every node and a failure detector that tells it who is suspected and who is back.
 */
import { type Assembly, assemble } from "../../../core/assemble.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat } from "../../membership/heartbeat.ts";
import { requireParts } from "../../options.ts";
import {
  type Mutex,
  type MutexWithWorkloadOptions,
  type MutexWorkload,
  mutexWorkload,
  tokensGrow,
  workloadWires,
} from "../family/workload.ts";

export type MonitoredMutex<M extends Mutex> = Assembly<{ workload: MutexWorkload; mutex: M; detector: Heartbeat }>;

export interface MonitoredMutexOptions<O> extends MutexWithWorkloadOptions<O> {
  detector?: Partial<HeartbeatOptions>;
}

const BEAT = "detector.beat";

export function monitoredMutex<M extends Mutex, O extends object>(
  mutex: (options?: O) => Protocol<M>,
  options: MonitoredMutexOptions<O> = {},
): Protocol<MonitoredMutex<M>> {
  const parts = {
    workload: mutexWorkload(options.workload),
    mutex: mutex(options.mutex),
    detector: heartbeat(options.detector),
  };
  const { name } = parts.mutex;
  requireParts(name, options, Object.keys(parts));
  const assembly = assemble<{ workload: MutexWorkload; mutex: Mutex; detector: Heartbeat }>(
    name,
    parts as typeof parts & { mutex: Protocol<Mutex> },
    {
      ...workloadWires,
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
