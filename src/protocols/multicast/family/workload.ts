/**
 * The multicast workload: a node sends a number of messages, one after another, and records its deliveries. Each
 * message carries the names of the messages that happened before it, so `properties.ts` can check ordering without the
 * protocol's own numbers. The record is never pruned, so the workload is only suitable for the simulator and the
 * checker.
 */
import type { Assembly, Parts, Wires } from "../../../core/assemble.ts";
import type { CommandOf, Context, EventOf, NodeId, Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { list, natural, text } from "../../../core/shape.ts";
import { inPart, type OptionsOf, option, optionTable, positive } from "../../options.ts";
import { composed, joined, type System } from "../../system.ts";
import { type GroupEvent, MAX_MEMBERS, type Multicast } from "../parts/layers.ts";

/** Vocabulary of the multicast workload. */
export type MulticastWorkload = {
  state: {
    /** The number of messages left to send. */
    left: number;
    /** The groups that this node is in, in ascending order. */
    groups: number[];
    /** The current view of the node's group, or 0 without views. */
    view: number;
    /**
     * The first in the unbroken series of views that the node has been in up to now. 0 without views, or before the
     * node's first view.
     */
    since: number;
    /** The names of the messages that the node has sent, in sending order. */
    sent: string[];
    /** The number of messages that the node had sent at its last ejection. Their delivery is not guaranteed. */
    excused: number;
    /** The deliveries in order, each with its view. */
    delivered: Letter[];
  };
  timer: "pause";
  command: /** Sends `messages` more messages. */
    | { type: "send"; messages: number }
    /** Reports that the multicast has delivered a message. */
    | { type: "delivered"; payload: string }
    /** Reports a new view, for a multicast with views. */
    | { type: "install"; view: number }
    /**
     * Reports that this node was ejected, for a multicast with views. Other nodes may have delivered different messages
     * in the view that this node was ejected from.
     */
    | { type: "eject" };
  event:
    | { type: "said"; payload: string; group: number }
    /**
     * The node has continued to the next view. `delivered`: the names of the messages that it delivered in the previous
     * view, in ascending order.
     */
    | { type: "passed"; view: number; delivered: string[] };
};

/**
 * A delivered message. `past`: the names of the messages that happened before it, including its sender's earlier
 * messages, joined into one string because long runs have many of them.
 */
export type Letter = { name: string; view: number; past: string };

/** Returns the names of the messages that happened before this message. */
export const pastOf = ({ past }: Letter): string[] => (past === "" ? [] : past.split(" "));

const MAX_GROUPS = 1_000;

const workloadOptions = optionTable("workload", {
  pauseMs: positive(5, "the time between two messages from one sender"),
  groups: option(
    list(list(natural, MAX_MEMBERS), MAX_GROUPS),
    [],
    "the members of each group if there are several; a node in several groups sends to them in turn",
  ),
});

/** Options of `multicastWorkload()`. */
export type MulticastWorkloadOptions = OptionsOf<typeof workloadOptions>;

export type State = MulticastWorkload["state"];
type Ctx = Context<MulticastWorkload>;

/** Creates the multicast workload. @throws UsageError if an option is unknown or out of range. */
export function multicastWorkload(given?: Partial<MulticastWorkloadOptions>): Protocol<MulticastWorkload> {
  const { pauseMs, groups } = workloadOptions.settle(given);

  const groupsOf = (self: NodeId): number[] =>
    groups.length === 0 ? [0] : groups.flatMap((members, group) => (members.includes(self) ? [group] : []));

  /**
   * Returns the names of the messages that this node knows. With one group, a node that has delivered a message has
   * also delivered everything that happened before it.
   */
  function knownTo({ sent, delivered }: State): Set<string> {
    const known = new Set(sent);
    for (const letter of delivered) {
      known.add(letter.name);
      if (groups.length > 1) for (const name of pastOf(letter)) known.add(name);
    }
    return known;
  }

  function say(state: State, ctx: Ctx): void {
    state.left -= 1;
    const group = state.groups[state.sent.length % state.groups.length];
    if (group === undefined) return; // The node is in no group.
    const name = nameOf(ctx.self, state.sent.length + 1, state.view, group);
    const past = [...knownTo(state)].sort();
    state.sent.push(name);
    ctx.emit({ type: "said", payload: [name, ...past].join(" "), group });
    if (state.left > 0) ctx.setTimer("pause", pauseMs);
  }

  return {
    name: "workload",
    init: (self) => ({
      left: 0,
      groups: groupsOf(self),
      view: 0,
      since: 0,
      sent: [],
      excused: 0,
      delivered: [],
    }),
    timeout: { pause: say },
    command: {
      send(state, { messages }, ctx) {
        const isBusy = state.left > 0;
        state.left += messages;
        if (!isBusy && state.left > 0) say(state, ctx);
      },
      delivered(state, { payload }) {
        const [name = ""] = payload.split(" ", 1);
        state.delivered.push({ name, view: state.view, past: payload.slice(name.length + 1) });
      },
      install(state, { view: next }, ctx) {
        const { since, view, delivered } = state;
        if (since === 0) state.since = next;
        else ctx.emit({ type: "passed", view, delivered: namesIn(view, delivered).sort() });
        state.view = next;
      },
      eject(state) {
        state.delivered = state.delivered.filter(({ view }) => view !== state.view);
        state.since = 0;
        state.excused = state.sent.length;
      },
    },
    shapes: {
      command: {
        send: { messages: natural },
        delivered: { payload: text(65_536) },
        install: { view: natural },
        eject: {},
      },
    },
    source: "Coulouris et al. §15.4: multicast(g, m), deliver(m)",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ left }) => ({ role: left > 0 ? "sending" : "listening" }),
  };
}

const namesIn = (view: number, delivered: readonly Letter[]): string[] =>
  delivered.flatMap((letter) => (letter.view === view ? [letter.name] : []));

/**
 * Creates a message's name from its sender, number, view and group, as in `0.2/3@1`. The view and the group are omitted
 * if they are 0.
 */
const nameOf = (from: NodeId, number: number, view: number, group: number): string =>
  `${from}.${number}${view === 0 ? "" : `/${view}`}${group === 0 ? "" : `@${group}`}`;
/** Returns the sender from a message's name. */
export const senderOf = (name: string): NodeId => Number.parseInt(name, 10);
/** Returns the group from a message's name. */
export const groupOf = (name: string): number => after("@", name);
/** Returns the view from a message's name. */
export const viewOf = (name: string): number => after("/", name);

function after(mark: string, name: string): number {
  const at = name.indexOf(mark);
  return at < 0 ? 0 : Number.parseInt(name.slice(at + 1), 10);
}

/** The commands and events that a workload exchanges with a multicast, with or without views. */
interface Heard extends Vocabulary {
  command: CommandOf<Multicast>;
  event: EventOf<Multicast> | GroupEvent;
}

function workloadWires(multicast: Protocol<Vocabulary>): Wires<{ workload: MulticastWorkload; multicast: Heard }> {
  const shapes = multicast.shapes as { readonly command?: { readonly send?: object } };
  const takesGroup = Object.hasOwn(shapes.command?.send ?? {}, "group");
  const send = (payload: string, group: number) =>
    (takesGroup ? { type: "send", payload, group } : { type: "send", payload }) as CommandOf<Multicast>;
  return {
    workload: { said: ({ payload, group }, give) => give("multicast", send(payload, group)) },
    multicast: {
      delivered: ({ payload }, give) => give("workload", { type: "delivered", payload }),
      installed: ({ view }, give) => give("workload", { type: "install", view }),
      ejected: (_event, give) => give("workload", { type: "eject" }),
    },
  };
}

/** Vocabulary of a multicast with a workload. */
export type MulticastWithWorkload<M extends Vocabulary> = Assembly<{ workload: MulticastWorkload; multicast: M }>;

/** Options that include the workload's options, as a part. */
export interface WorkloadOptions {
  workload?: Partial<MulticastWorkloadOptions>;
}

/**
 * Adds a workload to every node of a system whose algorithm is its `multicast` part.
 * @param properties the properties that deliveries must satisfy.
 */
export const withMulticastWorkload =
  <P extends Parts, O extends object>(
    { parts, wires, algorithm }: System,
    properties: readonly Property<MulticastWorkload>[],
  ) =>
  (options?: O & WorkloadOptions) => {
    const given = options as { multicast?: never } | undefined;
    const multicast = inPart("multicast", () => parts.multicast?.(given?.multicast)) as Protocol<Vocabulary>;
    const workload = (of?: Partial<MulticastWorkloadOptions>) => ({ ...multicastWorkload(of), properties });
    return composed<{ workload: MulticastWorkload } & P, O & WorkloadOptions>({
      parts: { workload, ...parts, multicast: () => multicast },
      wires: joined(workloadWires(multicast), wires),
      algorithm,
    })(options);
  };

/** Creates a multicast with a workload at every node. @param properties the properties that deliveries must satisfy */
export const multicastWithWorkload = <M extends Vocabulary>(
  multicast: Protocol<M>,
  properties: readonly Property<MulticastWorkload>[],
  options: Partial<MulticastWorkloadOptions> = {},
): Protocol<MulticastWithWorkload<M>> =>
  withMulticastWorkload<{ multicast: M }, object>(
    { parts: { multicast: () => multicast }, wires: {}, algorithm: "multicast" },
    properties,
  )({ workload: options });
