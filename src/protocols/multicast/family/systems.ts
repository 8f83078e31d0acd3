/**
 * The systems for multicasts, with a workload for the simulator and the checker, and without one for real processes.
 */
import type { Assembly } from "../../../core/assemble.ts";
import type { Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { type Heartbeat, heartbeat, watching } from "../../membership/heartbeat.ts";
import { type AnyMaker, composed, type System } from "../../system.ts";
import { type GroupsOptions, groupsGiven } from "../overlapping/groups.ts";
import { delivery, virtualSynchrony } from "./properties.ts";
import { type MulticastWorkload, type MulticastWorkloadOptions, withMulticastWorkload } from "./workload.ts";

type Orders = readonly Property<MulticastWorkload>[];

/**
 * Creates a model of a multicast.
 * @param orders the ordering properties of this multicast; with views, also virtual synchrony
 */
export const multicastModel = (system: System, orders: Orders) =>
  withMulticastWorkload<{ multicast: Vocabulary }, object>(
    system,
    Object.hasOwn(system.parts, "detector") ? [...orders, ...delivery, virtualSynchrony] : [...orders, ...delivery],
  );

/** Creates a model with several groups. A node sends to each of its groups in turn. */
export const groupsModel =
  (multicast: (options: GroupsOptions) => unknown, orders: Orders) =>
  (options: { workload?: Partial<MulticastWorkloadOptions>; multicast?: Partial<GroupsOptions> } = {}) => {
    const groups = groupsGiven(options.multicast, "multicast");
    const system = { parts: { multicast: () => multicast({ groups }) }, wires: {}, algorithm: "multicast" };
    return multicastModel(system, orders)({ ...options, workload: { ...options.workload, groups } });
  };

/** Adds a failure detector to a multicast with views. Such a multicast accepts crash notifications. */
export const monitored = (multicast: AnyMaker): System => ({
  parts: { multicast, detector: heartbeat },
  wires: watching("multicast"),
  algorithm: "multicast",
});

type Monitored<M extends Vocabulary> = { multicast: M; detector: Heartbeat };
/** Vocabulary of a multicast with a failure detector. */
export type MonitoredMulticast<M extends Vocabulary> = Assembly<Monitored<M>>;

/** Combines a multicast with a failure detector. */
export const monitoredMulticast = <M extends Vocabulary>(
  multicast: () => Protocol<M>,
): Protocol<MonitoredMulticast<M>> => composed<Monitored<M>>(monitored(multicast))();

/** Creates a monitored multicast with a workload at every node. */
export const monitoredMulticastModel = <M extends Vocabulary>(
  multicast: () => Protocol<M>,
  orders: Orders,
): Protocol<Assembly<{ workload: MulticastWorkload } & Monitored<M>>> =>
  multicastModel(monitored(multicast), orders)() as never;
