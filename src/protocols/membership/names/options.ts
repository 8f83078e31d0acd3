/** The options of names. */
import { count, type OptionsOf, optionTable } from "../../options.ts";

/** A name is put away a second after its last use; others are asked every two seconds. */
const namesOptions = optionTable("names", {
  sweepMs: count(250, "the time between two sweeps"),
  idleSweeps: count(5, "a name that no node has used for this many sweeps is closed"),
  askSweeps: count(8, "after this many sweeps all nodes are asked again"),
  graceSweeps: count(8, "for this many sweeps messages of a closed name are dropped"),
});

export type NamesOptions = OptionsOf<typeof namesOptions>;

export const settledNames = (given: Partial<NamesOptions> | undefined): NamesOptions => namesOptions.settle(given);
