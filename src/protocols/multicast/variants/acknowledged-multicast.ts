/** Basic multicast with acknowledgements, and with workloads. */
import type { Protocol } from "../../../core/protocol.ts";
import { type BasicMulticast, type BasicMulticastOptions, basicMulticast } from "../basic-multicast.ts";
import type { MulticastWithWorkload } from "../family/workload.ts";
import { type MulticastWithWorkloadOptions, used } from "../parts/used.ts";

type Options = Partial<Omit<BasicMulticastOptions, "acknowledges" | "dropsCopies">>;

export const acknowledgedMulticast: (
  options?: MulticastWithWorkloadOptions<Options>,
) => Protocol<MulticastWithWorkload<BasicMulticast>> = used(
  (options?: Options) => basicMulticast({ ...options, acknowledges: true }),
  [],
);

/** A lecture's “at least once”: a copy, sent since an acknowledgement was lost, is delivered again. */
export const atLeastOnceMulticast: (
  options?: MulticastWithWorkloadOptions<Options>,
) => Protocol<MulticastWithWorkload<BasicMulticast>> = used(
  (options?: Options) => basicMulticast({ ...options, acknowledges: true, dropsCopies: false }),
  [],
);
