/**
 * Elections combined with a failure detector. The detector notifies the election of suspected and restored nodes. The
 * election notifies the detector of nodes that it suspects or receives messages from.
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

/** Options for a monitored election, by part. */
export interface MonitoredOptions<O> {
  /** Options for the failure detector. */
  detector?: Partial<HeartbeatOptions>;
  /** Options for the election. */
  election?: Partial<O>;
}

/** Combines an election that accepts crash notifications with a failure detector. */
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

/** Vocabulary of the monitored bully election. */
export type MonitoredBully = Monitored<ExtendedBully>;
/** Options for `monitoredBully()`. */
export type MonitoredBullyOptions = MonitoredOptions<ExtendedBullyOptions>;
/**
 * Creates the extended bully election with a failure detector.
 * @throws UsageError if an option is unknown or out of range.
 */
export const monitoredBully = composed<{ detector: Heartbeat; election: ExtendedBully }, MonitoredBullyOptions>(
  monitored(extendedBully),
);

/** Vocabulary of the monitored ring election. */
export type MonitoredRing = Monitored<ExtendedRing>;
/**
 * Creates the extended ring election with a failure detector.
 * @throws UsageError if an option is unknown or out of range.
 */
export const monitoredRing = composed<
  { detector: Heartbeat; election: ExtendedRing },
  MonitoredOptions<ExtendedRingOptions>
>(monitored(extendedRing));

/** Vocabulary of the monitored Chang–Roberts election. */
export type MonitoredChangRoberts = Monitored<ExtendedChangRoberts>;
/**
 * Creates the extended Chang–Roberts election with a failure detector.
 * @throws UsageError if an option is unknown or out of range.
 */
export const monitoredChangRoberts = composed<
  { detector: Heartbeat; election: ExtendedChangRoberts },
  MonitoredOptions<ExtendedChangRobertsOptions>
>(monitored(extendedChangRoberts));
