/** The model of ip-multicast: with a workload at every node, which sees whether it keeps what it promises. */
import type { Property } from "../../../core/protocol.ts";
import { fifoOrder } from "../family/properties.ts";
import type { MulticastWorkload } from "../family/workload.ts";
import { used } from "../parts/used.ts";
import { ipMulticast } from "./ip-multicast.ts";
import type { IpMulticastOptions } from "./options.ts";

/** @param settled what nobody else may say. */
export function ipMulticastWithWorkload(
  settled: Partial<IpMulticastOptions> = {},
  orders: readonly Property<MulticastWorkload>[] = [fifoOrder],
) {
  return used((given?: Partial<IpMulticastOptions>) => ipMulticast({ ...given, ...settled }), orders);
}

/** Asks again at even intervals, so that a run that repeats itself comes back to where it was. */
export const evenly: Partial<IpMulticastOptions> = { repeatMs: 50, maxRepeatMs: 50, sessionMs: 50, maxSessionMs: 50 };
