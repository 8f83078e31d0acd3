/**
 * An election that watches its leader: a failure detector tells the election who is suspected and who is back, and the
 * election tells the detector which nodes it suspects or hears of by itself.
 */
import type { Assembly } from "../../core/assemble.ts";
import type { Vocabulary } from "../../core/protocol.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat, watching } from "../membership/heartbeat.ts";
import { type AnyMaker, composed, type System } from "../system.ts";
import { type ExtendedBully, type ExtendedBullyOptions, extendedBully } from "./bully/extended-bully.ts";
import {
  type ExtendedChangRoberts,
  type ExtendedChangRobertsOptions,
  extendedChangRoberts,
} from "./chang-roberts/extended-chang-roberts.ts";
import { type ExtendedRing, type ExtendedRingOptions, extendedRing } from "./ring/extended-ring.ts";

type Monitored<E extends Vocabulary> = Assembly<{ detector: Heartbeat; election: E }>;

export interface MonitoredOptions<O> {
  detector?: Partial<HeartbeatOptions>;
  election?: Partial<O>;
}

/** The system of an election that can be told of crashes. */
export const monitored = (election: AnyMaker): System => ({
  parts: { detector: heartbeat, election },
  wires: {
    ...watching("election"),
    election: {
      suspected: ({ node }, give) => give("detector", { type: "suspect", node }),
      heard: ({ node }, give) => give("detector", { type: "hear", node }),
    },
  },
  algorithm: "election",
});

export type MonitoredBully = Monitored<ExtendedBully>;
export type MonitoredBullyOptions = MonitoredOptions<ExtendedBullyOptions>;
export const monitoredBully = composed<{ detector: Heartbeat; election: ExtendedBully }, MonitoredBullyOptions>(
  monitored(extendedBully),
);

export type MonitoredRing = Monitored<ExtendedRing>;
export const monitoredRing = composed<
  { detector: Heartbeat; election: ExtendedRing },
  MonitoredOptions<ExtendedRingOptions>
>(monitored(extendedRing));

export type MonitoredChangRoberts = Monitored<ExtendedChangRoberts>;
export const monitoredChangRoberts = composed<
  { detector: Heartbeat; election: ExtendedChangRoberts },
  MonitoredOptions<ExtendedChangRobertsOptions>
>(monitored(extendedChangRoberts));
