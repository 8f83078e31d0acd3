/** What makes sense for permissions that are leases. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { requirePositive } from "../../options.ts";

export interface LeaseOptions {
  leaseMs: number;
  renewMs: number;
  /** By how much the speed of clocks may differ from the right one, as a share of it. */
  drift: number;
}

/** @throws UsageError */
export function requireLease(protocol: string, { leaseMs, renewMs, drift }: LeaseOptions): void {
  const refuse = (name: string, wanted: string, got: number): never => {
    throw new UsageError("bad-option", unexpected(`${protocol}.${name}`, wanted, got));
  };
  requirePositive(`${protocol}.leaseMs`, leaseMs);
  requirePositive(`${protocol}.renewMs`, renewMs);
  if (renewMs >= leaseMs) refuse("renewMs", `a number below leaseMs, which is ${leaseMs}`, renewMs);
  if (!(drift >= 0 && drift < 1)) refuse("drift", "a number from 0 up to, not including, 1", drift);
}
