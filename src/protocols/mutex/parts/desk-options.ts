/** What a desk can be told, and what makes sense. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";

export interface DeskOptions {
  /** So long after a request or renewal has been sent its sender is certain to be the only one inside. */
  leaseMs: number;
  /** After so long whoever waits asks again, and whoever is inside renews. A round trip should be done by then. */
  renewMs: number;
  /** By how much the speed of clocks may differ from the right one, as a share of it. */
  drift: number;
}

/** A lease outlasts a change of server, which takes an epoch-bully 0.7 s at worst. */
const defaults: DeskOptions = { leaseMs: 1_000, renewMs: 200, drift: 0.05 };

const optionShape = struct<DeskOptions>({ leaseMs: real, renewMs: real, drift: real });

/** @throws UsageError */
export function settled(given: Partial<DeskOptions> | undefined): DeskOptions {
  const options = settle(defaults, optionShape, given, "elected-server");
  const { leaseMs, renewMs, drift } = options;
  requirePositive("elected-server.leaseMs", leaseMs);
  requirePositive("elected-server.renewMs", renewMs);
  if (renewMs >= leaseMs)
    throw new UsageError(
      "bad-option",
      unexpected("elected-server.renewMs", `a number below leaseMs, which is ${leaseMs}`, renewMs),
    );
  if (!(drift >= 0 && drift < 1))
    throw new UsageError(
      "bad-option",
      unexpected("elected-server.drift", "a number from 0 up to, not including, 1", drift),
    );
  return options;
}
