/** The entry that `coterie new consensus NAME` adds to the registry. */
import { entry, type RegistryEntry } from "../../src/protocols/entry.ts";
import { consensus } from "../../src/protocols/family.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

export const added: Readonly<Record<string, RegistryEntry>> = {
  "skeleton-algorithm": entry(consensus, "one-line summary of how a value is decided", skeletonAlgorithm),
};
