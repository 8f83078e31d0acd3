/**
 * Locks of which the caller chose how long a permission lasts. The others of a name that is put away need not be asked who holds it
 * only because all leases of its algorithm are alike: a member that may grant it next waits as long as any can last. So a lock with a lease of
 * its own is not put away, and while it is open nobody can open the name with a shorter one.
 */
import { embeddedNamed } from "../../protocols/index.ts";
import { boundMs, type LeaseOptions } from "../../protocols/leases.ts";
import type { Setting } from "./algorithms.ts";
import { leaseOptions, type Timing } from "./timing.ts";

/** Whether it is neither that of the member's `timing` nor judged by the same clocks. How often it is renewed does not matter. */
export function hasOwnLease(setting: Setting, timing: Timing): boolean {
  const [own, usual] = [ownLease(setting), usualLease(setting, timing)];
  return own?.leaseMs !== usual?.leaseMs || own?.drift !== usual?.drift;
}

/** How much longer than this lock's own leases may last that were given while the name had the usual options, and was put away since. */
export function shortfallMs(setting: Setting, timing: Timing): number {
  const [own, usual] = [ownLease(setting), usualLease(setting, timing)];
  return own === undefined || usual === undefined ? 0 : Math.max(0, reclaimMs(usual) - reclaimMs(own));
}

const leaseOf = ({ kind, algorithm }: Setting, options: object): LeaseOptions | undefined =>
  kind === "mutex" ? embeddedNamed(algorithm)?.lease?.with(options) : undefined;
const ownLease = (setting: Setting) => leaseOf(setting, JSON.parse(setting.options));
const usualLease = (setting: Setting, timing: Timing) => leaseOf(setting, leaseOptions(timing, setting.algorithm));
const reclaimMs = ({ leaseMs, drift }: LeaseOptions): number => boundMs(leaseMs, drift);
