/** Basic multicast with acknowledgements, and with users. */
import type { Protocol } from "../../../core/protocol.ts";
import { type BasicMulticast, type BasicMulticastOptions, basicMulticast } from "../basic-multicast.ts";
import { type UsedMulticastOptions, used } from "../parts/used.ts";
import type { UsedMulticast } from "../parts/user.ts";

type Options = Partial<Omit<BasicMulticastOptions, "acknowledges" | "dropsCopies">>;

export const acknowledgedMulticast: (
  options?: UsedMulticastOptions<Options>,
) => Protocol<UsedMulticast<BasicMulticast>> = used(
  (options?: Options) => basicMulticast({ ...options, acknowledges: true }),
  [],
);

/** A lecture's “at least once”: a copy, sent since an acknowledgement was lost, is delivered again. */
export const atLeastOnceMulticast: (
  options?: UsedMulticastOptions<Options>,
) => Protocol<UsedMulticast<BasicMulticast>> = used(
  (options?: Options) => basicMulticast({ ...options, acknowledges: true, dropsCopies: false }),
  [],
);
