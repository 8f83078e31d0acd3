/** How much is measured, and where it is said how far it has come. */
export interface Run {
  readonly rounds: number;
  /** How long a measurement of throughput lasts. */
  readonly ms: number;
  progress(text: string): void;
}
