/** What `coterie doctor` says of one thing that it has looked at. */

export interface Finding {
  /** What was looked at. */
  readonly check: string;
  readonly verdict: "ok" | "warning" | "problem";
  readonly found: string;
  /** What to do about it; empty where nothing needs to be done. */
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
