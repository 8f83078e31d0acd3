/** The entry that `coterie new election NAME` adds to the registry. */
import { entry, type RegistryEntry } from "../../src/protocols/entry.ts";
import { election } from "../../src/protocols/family.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

export const added: Readonly<Record<string, RegistryEntry>> = {
  "skeleton-algorithm": entry(election, "one-line summary", skeletonAlgorithm),
};
