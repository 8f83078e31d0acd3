/** What a lock service can be told, and what makes sense. */
import { real, struct } from "../../../core/shape.ts";
import { settle } from "../../options.ts";
import { type LeaseOptions, requireLease } from "./lease-options.ts";

export interface LockServiceOptions extends LeaseOptions {
  /** So long after a request or renewal has been sent its sender is certain to be the only one inside. */
  leaseMs: number;
  /** After so long whoever waits asks again, and whoever is inside renews. A round trip should be done by then. */
  renewMs: number;
}

/** A lease outlasts a change of server, which takes an epoch-bully 0.7 s at worst. */
const defaults: LockServiceOptions = { leaseMs: 1_000, renewMs: 200, drift: 0.05 };

const optionShape = struct<LockServiceOptions>({ leaseMs: real, renewMs: real, drift: real });

/** @throws UsageError */
export function settled(given: Partial<LockServiceOptions> | undefined): LockServiceOptions {
  const options = settle(defaults, optionShape, given, "elected-server");
  requireLease("elected-server", options);
  return options;
}
