/** What an engine cannot do of what is promised, and why: docs/engines/promises.md shows the same table. */
export interface Exception {
  readonly engine: string;
  /** As the conformance suite names it. */
  readonly promise: string;
  /** What its user is told instead. */
  readonly error: RegExp;
  readonly reason: string;
}

export const exceptions: readonly Exception[] = [];
