/** Multicasts as simulator and checker run them: with users, who see whether what is promised is kept. */
import type { Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { requireParts } from "../../options.ts";
import { type GroupsOptions, groupsGiven } from "../overlapping/groups.ts";
import { delivery } from "./promises.ts";
import { type MulticastUser, type MulticastUserOptions, type UsedMulticast, usedMulticast } from "./user.ts";

export interface UsedMulticastOptions<O> {
  user?: Partial<MulticastUserOptions>;
  multicast?: O;
}

/** @param orders what this one promises beside what all multicasts do. */
export const used =
  <M extends Vocabulary, O extends object>(
    multicast: (options?: O) => Protocol<M>,
    orders: readonly Property<MulticastUser>[],
  ) =>
  (options: UsedMulticastOptions<O> = {}): Protocol<UsedMulticast<M>> => {
    const made = multicast(options.multicast);
    requireParts(made.name, options, ["user", "multicast"]);
    return usedMulticast(made, [...orders, ...delivery], options.user);
  };

/** The same for several groups: users send to one after the other of those that they are in. */
export const usedInGroups =
  <M extends Vocabulary>(
    multicast: (options: GroupsOptions) => Protocol<M>,
    orders: readonly Property<MulticastUser>[],
  ) =>
  (options: UsedMulticastOptions<Partial<GroupsOptions>> = {}): Protocol<UsedMulticast<M>> => {
    const groups = groupsGiven(options.multicast, "multicast");
    return used(() => multicast({ groups }), orders)({ ...options, user: { ...options.user, groups } });
  };
