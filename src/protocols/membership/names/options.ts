/** What names can be told. */
import { natural, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";

export interface NamesOptions {
  sweepMs: number;
  /** Whatever nobody has used for so many sweeps is put away. */
  idleSweeps: number;
  /** A node that uses the name, suspects another or is down does not answer. After so many sweeps all are asked again. */
  askSweeps: number;
  /** What others still say of a name that is over is dropped for so many sweeps. */
  graceSweeps: number;
}

/** A name is put away a second after its last use; others are asked every two seconds. */
const defaults: NamesOptions = { sweepMs: 250, idleSweeps: 5, askSweeps: 8, graceSweeps: 8 };

const optionShape = struct<NamesOptions>({
  sweepMs: natural,
  idleSweeps: natural,
  askSweeps: natural,
  graceSweeps: natural,
});

/** @throws UsageError */
export function settledNames(given: Partial<NamesOptions> | undefined): NamesOptions {
  const options = settle(defaults, optionShape, given, "names");
  for (const [name, value] of Object.entries(options)) requirePositive(`names.${name}`, value);
  return options;
}
