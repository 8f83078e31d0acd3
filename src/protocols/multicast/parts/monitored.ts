/**
 * A multicast with views and a failure detector, which says who is suspected and who is back. As simulator and checker run
 * it there is a workload at every node, too. Whoever is ejected from a view does not count what it has delivered there: others may have
 * delivered something else.
 */
import { type Assembly, assemble, type Wires } from "../../../core/assemble.ts";
import type { CommandOf, Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat } from "../../membership/heartbeat.ts";
import { requireParts } from "../../options.ts";
import { delivery, virtualSynchrony } from "../family/properties.ts";
import { type MulticastWorkload, type MulticastWorkloadOptions, multicastWorkload } from "../family/workload.ts";
import type { ViewSynchronyOptions } from "../view-synchrony.ts";
import type { GroupEvent, Multicast } from "./layers.ts";

export interface GroupWorkload extends Vocabulary {
  state: MulticastWorkload["state"];
  timer: MulticastWorkload["timer"];
  command: CommandOf<MulticastWorkload> | { type: "eject" };
  event: MulticastWorkload["event"];
}

type MonitoredMulticast<M extends Vocabulary> = Assembly<{
  workload: GroupWorkload;
  multicast: M;
  detector: Heartbeat;
}>;

interface MonitoredMulticastOptions {
  workload?: Partial<MulticastWorkloadOptions>;
  multicast?: ViewSynchronyOptions;
  detector?: Partial<HeartbeatOptions>;
}

/** What the wires need of a multicast with views. */
interface Watched extends Vocabulary {
  command: CommandOf<Multicast> | { type: "suspect"; node: number } | { type: "restore"; node: number };
  event: Multicast["event"] | GroupEvent;
}

type GroupWires = Wires<{ workload: GroupWorkload; multicast: Watched; detector: Heartbeat }>;

const detector: GroupWires["detector"] = {
  suspected: ({ node }, give) => give("multicast", { type: "suspect", node }),
  restored: ({ node }, give) => give("multicast", { type: "restore", node }),
};

/** Between a workload and its multicast with views. */
export const workloadWires: Pick<GroupWires, "workload" | "multicast"> = {
  workload: { said: ({ payload }, give) => give("multicast", { type: "send", payload }) },
  multicast: {
    delivered: ({ payload }, give) => give("workload", { type: "delivered", payload }),
    installed: ({ view }, give) => give("workload", { type: "install", view }),
    ejected: (_event, give) => give("workload", { type: "eject" }),
  },
};

/** @param orders what this one promises beside what all multicasts do. */
export const monitoredMulticast =
  <M extends Vocabulary>(
    multicast: (options?: ViewSynchronyOptions) => Protocol<M>,
    orders: readonly Property<MulticastWorkload>[],
  ) =>
  (options: MonitoredMulticastOptions = {}): Protocol<MonitoredMulticast<M>> => {
    const made = multicast(options.multicast);
    requireParts(made.name, options, ["workload", "multicast", "detector"]);
    const parts = {
      workload: groupWorkload(options.workload, orders),
      multicast: made,
      detector: heartbeat(options.detector),
    };
    return assemble<{ workload: GroupWorkload; multicast: M; detector: Heartbeat }>(
      made.name,
      parts,
      { ...workloadWires, detector } as never,
      {
        face: "multicast",
      },
    );
  };

export type WatchedMulticast<M extends Vocabulary> = Assembly<{ multicast: M; detector: Heartbeat }>;

/** The same without a workload, as real processes run it. */
export const watchedMulticast =
  <M extends Vocabulary>(multicast: (options?: ViewSynchronyOptions) => Protocol<M>) =>
  (options: Omit<MonitoredMulticastOptions, "workload"> = {}): Protocol<WatchedMulticast<M>> => {
    const made = multicast(options.multicast);
    requireParts(made.name, options, ["multicast", "detector"]);
    const parts = { multicast: made, detector: heartbeat(options.detector) };
    return assemble<{ multicast: M; detector: Heartbeat }>(made.name, parts, { detector } as never, {
      face: "multicast",
    });
  };

/** @param orders what its multicast promises beside what all with views do. */
export function groupWorkload(
  options: Partial<MulticastWorkloadOptions> | undefined,
  orders: readonly Property<MulticastWorkload>[],
): Protocol<GroupWorkload> {
  const workload = multicastWorkload(options);
  return {
    ...workload,
    properties: [...orders, ...delivery, virtualSynchrony],
    command: {
      ...workload.command,
      eject(state) {
        state.delivered = state.delivered.filter(({ view }) => view !== state.view);
        state.since = 0;
        state.excused = state.sent.length;
      },
    },
    shapes: { command: { ...workload.shapes.command, eject: {} } },
  };
}
