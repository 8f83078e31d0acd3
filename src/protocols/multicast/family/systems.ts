/** The systems of multicasts: with what simulator and checker run beside them, and what real processes do. */
import type { Assembly } from "../../../core/assemble.ts";
import type { Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { type Heartbeat, heartbeat, watching } from "../../membership/heartbeat.ts";
import { type AnyMaker, composed, type System } from "../../system.ts";
import { type GroupsOptions, groupsGiven } from "../overlapping/groups.ts";
import { delivery, virtualSynchrony } from "./properties.ts";
import { type MulticastWorkload, type MulticastWorkloadOptions, withMulticastWorkload } from "./workload.ts";

type Orders = readonly Property<MulticastWorkload>[];

/** @param orders what this one promises beside what all multicasts do; with views, that is virtual synchrony too. */
export const multicastModel = (system: System, orders: Orders) =>
  withMulticastWorkload<{ multicast: Vocabulary }, object>(
    system,
    Object.hasOwn(system.parts, "detector") ? [...orders, ...delivery, virtualSynchrony] : [...orders, ...delivery],
  );

/** The same for several groups: a node sends to one after the other of those that it is in. */
export const groupsModel =
  (multicast: (options: GroupsOptions) => unknown, orders: Orders) =>
  (options: { workload?: Partial<MulticastWorkloadOptions>; multicast?: Partial<GroupsOptions> } = {}) => {
    const groups = groupsGiven(options.multicast, "multicast");
    const system = { parts: { multicast: () => multicast({ groups }) }, wires: {}, algorithm: "multicast" };
    return multicastModel(system, orders)({ ...options, workload: { ...options.workload, groups } });
  };

/** The system of a multicast with views, which can be told of crashes. */
export const monitored = (multicast: AnyMaker): System => ({
  parts: { multicast, detector: heartbeat },
  wires: watching("multicast"),
  algorithm: "multicast",
});

type Monitored<M extends Vocabulary> = { multicast: M; detector: Heartbeat };
export type MonitoredMulticast<M extends Vocabulary> = Assembly<Monitored<M>>;

export const monitoredMulticast = <M extends Vocabulary>(
  multicast: () => Protocol<M>,
): Protocol<MonitoredMulticast<M>> => composed<Monitored<M>>(monitored(multicast))();

/** The same with a workload at every node. */
export const monitoredMulticastModel = <M extends Vocabulary>(
  multicast: () => Protocol<M>,
  orders: Orders,
): Protocol<Assembly<{ workload: MulticastWorkload } & Monitored<M>>> =>
  multicastModel(monitored(multicast), orders)() as never;
