/** Multicasts as simulator and checker run them: with a workload, which sees whether what is promised is kept. */
import type { Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { requireParts } from "../../options.ts";
import { delivery } from "../family/properties.ts";
import {
  type MulticastWithWorkload,
  type MulticastWorkload,
  type MulticastWorkloadOptions,
  multicastWithWorkload,
} from "../family/workload.ts";
import { type GroupsOptions, groupsGiven } from "../overlapping/groups.ts";

export interface MulticastWithWorkloadOptions<O> {
  workload?: Partial<MulticastWorkloadOptions>;
  multicast?: O;
}

/** @param orders what this one promises beside what all multicasts do. */
export const used =
  <M extends Vocabulary, O extends object>(
    multicast: (options?: O) => Protocol<M>,
    orders: readonly Property<MulticastWorkload>[],
  ) =>
  (options: MulticastWithWorkloadOptions<O> = {}): Protocol<MulticastWithWorkload<M>> => {
    const made = multicast(options.multicast);
    requireParts(made.name, options, ["workload", "multicast"]);
    return multicastWithWorkload(made, [...orders, ...delivery], options.workload);
  };

/** The same for several groups: a node sends to one after the other of those that it is in. */
export const groupsWithWorkload =
  <M extends Vocabulary>(
    multicast: (options: GroupsOptions) => Protocol<M>,
    orders: readonly Property<MulticastWorkload>[],
  ) =>
  (options: MulticastWithWorkloadOptions<Partial<GroupsOptions>> = {}): Protocol<MulticastWithWorkload<M>> => {
    const groups = groupsGiven(options.multicast, "multicast");
    return used(() => multicast({ groups }), orders)({ ...options, workload: { ...options.workload, groups } });
  };
