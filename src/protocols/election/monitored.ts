/**
 * An election that watches its leader: a failure detector tells the election who is suspected and who is back, and the
 * election tells the detector whom it suspects, if it finds out by itself.
 */
import { type Assembly, assemble, type Wires } from "../../core/assemble.ts";
import type { NodeId, Protocol, Tagged } from "../../core/protocol.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat } from "../membership/heartbeat.ts";
import { requireParts } from "../options.ts";
import { type ExtendedBully, type ExtendedBullyOptions, extendedBully } from "./bully/extended-bully.ts";
import { type ChangRoberts, type ChangRobertsOptions, changRoberts } from "./chang-roberts.ts";
import { type Ring, type RingOptions, ring } from "./ring.ts";

/** An election that can be told of crashes. */
interface Watching {
  state: object;
  message: Tagged;
  timer?: string;
  command: { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId } | Tagged;
  event: { type: "elected"; leader: NodeId } | { type: "suspected"; node: NodeId } | { type: "heard"; node: NodeId };
}

type Monitored<E extends Watching> = Assembly<{ detector: Heartbeat; election: E }>;

export interface MonitoredOptions<O> {
  detector?: Partial<HeartbeatOptions>;
  election?: Partial<O>;
}

function monitored<E extends Watching, O>(
  name: string,
  election: (options?: Partial<O>) => Protocol<E>,
): (options?: MonitoredOptions<O>) => Protocol<Monitored<E>> {
  const wires: Wires<{ detector: Heartbeat; election: Watching }> = {
    detector: {
      suspected: ({ node }, give) => give("election", { type: "suspect", node }),
      restored: ({ node }, give) => give("election", { type: "restore", node }),
    },
    election: {
      suspected: ({ node }, give) => give("detector", { type: "suspect", node }),
      heard: ({ node }, give) => give("detector", { type: "hear", node }),
    },
  };
  return (options = {}) => {
    requireParts(name, options, ["detector", "election"]);
    const parts = { detector: heartbeat(options.detector), election: election(options.election) };
    return assemble<{ detector: Heartbeat; election: E }>(name, parts, wires, { face: "election" });
  };
}

export type MonitoredBully = Monitored<ExtendedBully>;
export type MonitoredBullyOptions = MonitoredOptions<ExtendedBullyOptions>;
export const monitoredBully = monitored<ExtendedBully, ExtendedBullyOptions>("bully", extendedBully);

export type MonitoredRing = Monitored<Ring>;
export const monitoredRing = monitored<Ring, RingOptions>("ring", ring);

export type MonitoredChangRoberts = Monitored<ChangRoberts>;
export const monitoredChangRoberts = monitored<ChangRoberts, ChangRobertsOptions>("chang-roberts", changRoberts);
