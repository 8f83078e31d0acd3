/** The laboratory's form of ip-multicast: with a user at every node, which sees whether it keeps what it promises. */
import type { Property, Protocol } from "../../../core/protocol.ts";
import { ipMulticast } from "../ip-multicast.ts";
import type { IpMulticastOptions } from "./ip-options.ts";
import type { IpMulticast } from "./ip-words.ts";
import { fifoOrder } from "./promises.ts";
import { restless } from "./restless.ts";
import { type UsedMulticastOptions, used } from "./used.ts";
import type { MulticastUser, UsedMulticast } from "./user.ts";

/** @param settled what nobody else may say. */
export function usedIpMulticast(
  settled: Partial<IpMulticastOptions> = {},
  orders: readonly Property<MulticastUser>[] = [fifoOrder],
) {
  const made = used((given?: Partial<IpMulticastOptions>) => ipMulticast({ ...given, ...settled }), orders);
  return (options?: UsedMulticastOptions<Partial<IpMulticastOptions>>): Protocol<UsedMulticast<IpMulticast>> =>
    restless(made(options));
}

/** Asks again at even intervals, so that a run that repeats itself comes back to where it was. */
export const evenly: Partial<IpMulticastOptions> = { repeatMs: 50, maxRepeatMs: 50, sessionMs: 50, maxSessionMs: 50 };
