/** One finding of `coterie doctor`. */

export interface Finding {
  /** The name of the check. */
  readonly check: string;
  readonly verdict: "ok" | "warning" | "problem";
  readonly found: string;
  /** The remedy; empty if none is needed. */
  readonly advice: string;
}

export const ok = (check: string, found: string): Finding => ({ check, verdict: "ok", found, advice: "" });
export const warning = (check: string, found: string, advice: string): Finding => ({
  check,
  verdict: "warning",
  found,
  advice,
});
export const problem = (check: string, found: string, advice: string): Finding => ({
  check,
  verdict: "problem",
  found,
  advice,
});
