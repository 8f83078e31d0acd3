/** The entry that `coterie new multicast NAME` adds to the registry. */
import { entry, type RegistryEntry } from "../../src/protocols/entry.ts";
import { multicast } from "../../src/protocols/family.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

export const added: Readonly<Record<string, RegistryEntry>> = {
  "skeleton-algorithm": entry(multicast, "one-line summary of the delivery order", skeletonAlgorithm),
};
