/** Basic multicast with acknowledgements, and with users: at rest is who has nothing left to send again. */
import type { Protocol } from "../../../core/protocol.ts";
import { type BasicMulticast, type BasicMulticastOptions, basicMulticast } from "../basic-multicast.ts";
import { restless } from "../parts/restless.ts";
import { type UsedMulticastOptions, used } from "../parts/used.ts";
import type { UsedMulticast } from "../parts/user.ts";

type Options = Partial<Omit<BasicMulticastOptions, "acknowledges">>;

const usedAcknowledged = used((options?: Options) => basicMulticast({ ...options, acknowledges: true }), []);

export const acknowledgedMulticast = (
  options?: UsedMulticastOptions<Options>,
): Protocol<UsedMulticast<BasicMulticast>> => restless(usedAcknowledged(options), "multicast.resend");
