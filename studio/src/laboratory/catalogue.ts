/** What the gallery knows of each algorithm. */

export interface Exhibit {
  readonly name: string;
  readonly summary: string;
  readonly family: string;
  readonly topology: string;
  /** All that is claimed of it; first what is claimed of every moment. */
  readonly guarantees: readonly string[];
  /** Of five nodes. */
  readonly costs: readonly { readonly when: string; readonly count: number }[];
  readonly scenarios: readonly {
    readonly file: string;
    readonly title: string;
    /** The form of the algorithm that it runs; absent: the textbook's. */
    readonly variant?: string;
  }[];
}

export type Catalogue = readonly Exhibit[];
