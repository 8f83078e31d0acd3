/** The entry that `coterie new membership NAME` adds to the registry. */
import { entry, type RegistryEntry } from "../../src/protocols/entry.ts";
import { membership } from "../../src/protocols/family.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

export const added: Readonly<Record<string, RegistryEntry>> = {
  "skeleton-algorithm": entry(membership, "one-line summary of the suspected nodes", skeletonAlgorithm, {
    mustStart: true,
    check: { maxTimeouts: 4 },
  }),
};
