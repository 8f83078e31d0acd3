/**
 * Locks of `elected-server` whose caller chose how long a permission lasts. The others of a name that is put away need not be asked who
 * holds it only because all leases are alike: whoever serves waits as long as any can last. So a lock with a lease of its own is
 * not put away, and while it is open nobody can open the name with a shorter one.
 */
import { boundMs } from "../../protocols/election/parts/lease.ts";
import { type DeskOptions, settled } from "../../protocols/mutex/parts/desk-options.ts";
import { optionsText, type Setting } from "./algorithms.ts";
import { leaseOptions, type Timing } from "./timing.ts";

const LEASED = "elected-server";

/** Whether it is neither that of the member's `timing` nor judged by the same clocks. How often it is renewed does not matter. */
export function hasOwnLease({ algorithm, options }: Setting, timing: Timing): boolean {
  if (algorithm !== LEASED) return false;
  const [own, usual] = [leaseOf(options), usualLease(timing)];
  return own.leaseMs !== usual.leaseMs || own.drift !== usual.drift;
}

/** How much longer than this lock's own leases may last that were given while the name had the usual options, and was put away since. */
export function shortfallMs(setting: Setting, timing: Timing): number {
  if (!hasOwnLease(setting, timing)) return 0;
  return Math.max(0, reclaimMs(usualLease(timing)) - reclaimMs(leaseOf(setting.options)));
}

const leaseOf = (options: string): DeskOptions => settled(JSON.parse(options) as Partial<DeskOptions>);
const usualLease = (timing: Timing): DeskOptions => leaseOf(optionsText(leaseOptions(timing, LEASED)));
const reclaimMs = ({ leaseMs, drift }: DeskOptions): number => boundMs(leaseMs, drift);
