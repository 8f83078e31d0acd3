/**
 * An election that watches its leader: a failure detector tells the election who is suspected and who is back, and the
 * election tells the detector whom it holds for crashed.
 */
import { type Assembly, assemble } from "../../core/assemble.ts";
import type { Protocol } from "../../core/protocol.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat } from "../membership/heartbeat.ts";
import { requireParts } from "../options.ts";
import { type Bully, type BullyOptions, bully } from "./bully.ts";

export type MonitoredBully = Assembly<{ detector: Heartbeat; election: Bully }>;

export interface MonitoredBullyOptions {
  detector?: Partial<HeartbeatOptions>;
  election?: Partial<BullyOptions>;
}

export function monitoredBully(options: MonitoredBullyOptions = {}): Protocol<MonitoredBully> {
  requireParts("bully", options, ["detector", "election"]);
  return assemble<{ detector: Heartbeat; election: Bully }>(
    "bully",
    { detector: heartbeat(options.detector), election: bully(options.election) },
    {
      detector: {
        suspected: ({ node }, give) => give("election", { type: "suspect", node }),
        restored: ({ node }, give) => give("election", { type: "restore", node }),
      },
      election: {
        presumed: ({ node }, give) => give("detector", { type: "presume", node }),
        heard: ({ node }, give) => give("detector", { type: "hear", node }),
      },
    },
    { face: "election" },
  );
}
