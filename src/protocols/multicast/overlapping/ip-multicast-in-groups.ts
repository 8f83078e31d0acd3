/**
 * Reliable multicast over IP multicast for overlapping groups: in each group g that node p is in it counts S_g^p, its own
 * messages to g, and for each member q of g R_g^q, q's messages to g that it has. Coulouris et al. §15.4.2. One group's
 * losses are repaired, and its messages freed, whatever becomes of the others; FIFO order asks for no more.
 */
import type { Protocol } from "../../../core/protocol.ts";
import { ipMulticast } from "../ip-multicast/ip-multicast.ts";
import { evenly } from "../ip-multicast/options.ts";
import { type EachGroup, eachGroup } from "./each-group.ts";
import type { GroupsOptions } from "./groups.ts";

export const ipMulticastInGroups = (given?: Partial<GroupsOptions>): Protocol<EachGroup> =>
  eachGroup(() => ipMulticast(evenly), given);
