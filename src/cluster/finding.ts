/** One finding of `coterie doctor`. */

export interface Finding {
  /** The name of the check. */
  readonly check: string;
  readonly verdict: "ok" | "warning" | "problem";
  readonly found: string;
  /** How to fix it. Empty if there is nothing to fix. */
  readonly advice: string;
}

/** Reports a check without a problem. */
export const ok = (check: string, found: string): Finding => ({ check, verdict: "ok", found, advice: "" });
/** Reports something that may become a problem. */
export const warning = (check: string, found: string, advice: string): Finding => ({
  check,
  verdict: "warning",
  found,
  advice,
});
/** Reports something that must be repaired. */
export const problem = (check: string, found: string, advice: string): Finding => ({
  check,
  verdict: "problem",
  found,
  advice,
});
