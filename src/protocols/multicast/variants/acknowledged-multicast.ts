/** Basic multicast with acknowledgements, and with users. */
import type { Protocol } from "../../../core/protocol.ts";
import { type BasicMulticast, type BasicMulticastOptions, basicMulticast } from "../basic-multicast.ts";
import { type UsedMulticastOptions, used } from "../parts/used.ts";
import type { UsedMulticast } from "../parts/user.ts";

type Options = Partial<Omit<BasicMulticastOptions, "acknowledges">>;

export const acknowledgedMulticast: (
  options?: UsedMulticastOptions<Options>,
) => Protocol<UsedMulticast<BasicMulticast>> = used(
  (options?: Options) => basicMulticast({ ...options, acknowledges: true }),
  [],
);
