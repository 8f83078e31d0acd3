/** The entry that `coterie new mutex NAME` adds to the registry. */
import { entry, type RegistryEntry } from "../../src/protocols/entry.ts";
import { mutualExclusion } from "../../src/protocols/family.ts";
import { probed } from "../../src/protocols/mutex/family/causality-probe.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

export const added: Readonly<Record<string, RegistryEntry>> = {
  "skeleton-algorithm": entry(mutualExclusion, "one-line summary", skeletonAlgorithm, {
    variants: { "causality-probe": probed(skeletonAlgorithm) },
  }),
};
