/** Types of entries in the gallery. */

export interface Exhibit {
  readonly name: string;
  readonly summary: string;
  readonly family: string;
  readonly topology: string;
  /** All guarantees, with safety properties first. */
  readonly guarantees: readonly string[];
  /** Message counts for five nodes. */
  readonly costs: readonly { readonly when: string; readonly count: number }[];
  readonly scenarios: readonly {
    readonly file: string;
    readonly title: string;
    /** The variant to run. Default: the textbook form. */
    readonly variant?: string;
  }[];
}

export type Catalogue = readonly Exhibit[];
