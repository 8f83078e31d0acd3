/**
 * A multicast with views and a failure detector, which says who is suspected and who is back. As simulator and checker run
 * it there is a user at every node, too. Whoever is ejected from a view does not count what it has delivered there: others may have
 * delivered something else.
 */
import { type Assembly, assemble, type Wires } from "../../../core/assemble.ts";
import type { CommandOf, Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat } from "../../membership/heartbeat.ts";
import { requireParts } from "../../options.ts";
import type { ViewSynchronyOptions } from "../view-synchrony.ts";
import type { GroupEvent, Multicast } from "./layers.ts";
import { delivery, virtualSynchrony } from "./promises.ts";
import { type MulticastUser, type MulticastUserOptions, multicastUser } from "./user.ts";

export interface GroupUser extends Vocabulary {
  state: MulticastUser["state"];
  timer: MulticastUser["timer"];
  command: CommandOf<MulticastUser> | { type: "eject" };
  event: MulticastUser["event"];
}

type MonitoredMulticast<M extends Vocabulary> = Assembly<{ user: GroupUser; multicast: M; detector: Heartbeat }>;

interface MonitoredMulticastOptions {
  user?: Partial<MulticastUserOptions>;
  multicast?: ViewSynchronyOptions;
  detector?: Partial<HeartbeatOptions>;
}

/** What the wires need of a multicast with views. */
interface Watched extends Vocabulary {
  command: CommandOf<Multicast> | { type: "suspect"; node: number } | { type: "restore"; node: number };
  event: Multicast["event"] | GroupEvent;
}

type GroupWires = Wires<{ user: GroupUser; multicast: Watched; detector: Heartbeat }>;

const detector: GroupWires["detector"] = {
  suspected: ({ node }, give) => give("multicast", { type: "suspect", node }),
  restored: ({ node }, give) => give("multicast", { type: "restore", node }),
};

/** Between a user and its multicast with views. */
export const userWires: Pick<GroupWires, "user" | "multicast"> = {
  user: { said: ({ payload }, give) => give("multicast", { type: "send", payload }) },
  multicast: {
    delivered: ({ payload }, give) => give("user", { type: "delivered", payload }),
    installed: ({ view }, give) => give("user", { type: "install", view }),
    ejected: (_event, give) => give("user", { type: "eject" }),
  },
};

/** @param orders what this one promises beside what all multicasts do. */
export const monitoredMulticast =
  <M extends Vocabulary>(
    multicast: (options?: ViewSynchronyOptions) => Protocol<M>,
    orders: readonly Property<MulticastUser>[],
  ) =>
  (options: MonitoredMulticastOptions = {}): Protocol<MonitoredMulticast<M>> => {
    const made = multicast(options.multicast);
    requireParts(made.name, options, ["user", "multicast", "detector"]);
    const parts = {
      user: groupUser(options.user, orders),
      multicast: made,
      detector: heartbeat(options.detector),
    };
    return assemble<{ user: GroupUser; multicast: M; detector: Heartbeat }>(
      made.name,
      parts,
      { ...userWires, detector } as never,
      {
        face: "multicast",
      },
    );
  };

export type WatchedMulticast<M extends Vocabulary> = Assembly<{ multicast: M; detector: Heartbeat }>;

/** The same without a user, as real processes run it. */
export const watchedMulticast =
  <M extends Vocabulary>(multicast: (options?: ViewSynchronyOptions) => Protocol<M>) =>
  (options: Omit<MonitoredMulticastOptions, "user"> = {}): Protocol<WatchedMulticast<M>> => {
    const made = multicast(options.multicast);
    requireParts(made.name, options, ["multicast", "detector"]);
    const parts = { multicast: made, detector: heartbeat(options.detector) };
    return assemble<{ multicast: M; detector: Heartbeat }>(made.name, parts, { detector } as never, {
      face: "multicast",
    });
  };

/** @param orders what its multicast promises beside what all with views do. */
export function groupUser(
  options: Partial<MulticastUserOptions> | undefined,
  orders: readonly Property<MulticastUser>[],
): Protocol<GroupUser> {
  const user = multicastUser(options);
  return {
    ...user,
    properties: [...orders, ...delivery, virtualSynchrony],
    command: {
      ...user.command,
      eject(state) {
        state.delivered = state.delivered.filter(({ view }) => view !== state.view);
        state.since = 0;
        state.excused = state.sent.length;
      },
    },
    shapes: { command: { ...user.shapes.command, eject: {} } },
  };
}
