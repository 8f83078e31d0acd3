/** What rounds of a measurement come to. */
export const median = (figures: readonly number[]): number =>
  [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)] as number;

/** `5.67 [5.21–5.90]`: median, least and most. */
export const spread = (figures: readonly number[], digits: number): string =>
  `${median(figures).toFixed(digits)} [${Math.min(...figures).toFixed(digits)}–${Math.max(...figures).toFixed(digits)}]`;
