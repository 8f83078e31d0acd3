/** The multicasts that `coterie/protocols` exports. */
export { type BasicMulticast, type BasicMulticastOptions, basicMulticast } from "./multicast/basic-multicast.ts";
export { type Causal, causal } from "./multicast/causal.ts";
export { type CausalTotal, causalTotal } from "./multicast/causal-total.ts";
export {
  agreement,
  fifoOrder,
  happenedBeforeOrder,
  integrity,
  totalOrder,
  validity,
} from "./multicast/family/properties.ts";
export {
  type MulticastWithWorkload,
  type MulticastWorkload,
  type MulticastWorkloadOptions,
  multicastWithWorkload,
  multicastWorkload,
} from "./multicast/family/workload.ts";
export { type Fifo, fifo } from "./multicast/fifo.ts";
export { type FifoTotal, fifoTotal } from "./multicast/fifo-total.ts";
export { type IpMulticast, type IpMulticastOptions, ipMulticast } from "./multicast/ip-multicast/ip-multicast.ts";
export { type Isis, isis } from "./multicast/isis.ts";
export type { OrderOptions } from "./multicast/parts/group.ts";
export type { GroupCommand, GroupEvent, Multicast } from "./multicast/parts/layers.ts";
export {
  type ReliableMulticast,
  type ReliableMulticastOptions,
  reliableMulticast,
} from "./multicast/reliable-multicast.ts";
export { type ViewSynchrony, type ViewSynchronyOptions, viewSynchrony } from "./multicast/view-synchrony.ts";
