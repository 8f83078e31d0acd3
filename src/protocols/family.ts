/**
 * Families of algorithms. The algorithms in a family share commands and results, so the command line, scenarios,
 * benchmarks and the studio can treat them alike.
 */
import type { NodeId, Property, Tagged, View } from "../core/protocol.ts";
import { unwrapped } from "../core/wrapping.ts";
import type { Command } from "./consensus/family/replicated-log.ts";
import { withLogClients } from "./consensus/family/systems.ts";
import {
  consensusShown,
  customShown,
  type DeclaredPresentation,
  electionShown,
  logShown,
  membershipShown,
  multicastShown,
  mutexShown,
} from "./headlines.ts";
import { multicastModel } from "./multicast/family/systems.ts";
import { withMutexWorkload } from "./mutex/family/workload.ts";
import type { Presentation } from "./presentation.ts";
import type { AnyMaker, System } from "./system.ts";

/** A family of algorithms that solve the same problem, such as elections. */
export interface Family {
  /** The algorithm's name among the parts of a system. */
  readonly part: string;
  /** Adds the family's workload to every node. Absent if the initiators' commands go directly to the algorithm. */
  withWorkload?(system: System, orders: readonly Property<never>[]): AnyMaker;
  /** Whether real processes run the workload as well. */
  readonly isUsedInNodes?: true;
  /** The problem that the family solves, as the tools print it. */
  readonly name: "election" | "mutual exclusion" | "multicast" | "consensus" | "membership" | "a custom problem";
  /** The name of the command for initiators, as in `--call 4`. Null if the family has no such command. */
  readonly verb: "call" | "request" | "send" | "propose" | null;
  /** The unit of the repetition count. Null if the work cannot be repeated. */
  readonly count: "entries" | "messages" | "commands" | "transactions" | null;
  /** The default initiators: the live node with the lowest id, or all nodes. */
  readonly initiators: "lowest" | "all";
  /** Returns the command that makes a node do its work `times` times. Null if the family has no such command. */
  ask(node: NodeId, times: number): Tagged | null;
  /** Returns the command that makes a node vote no, as in `--vote-no 2`. Absent if nodes do not vote. */
  refuse?(): Tagged;
  /**
   * The event that a node or one of its parts emits when the work is done, and the text to print if the event never
   * occurred. Null if the family has no such event.
   */
  readonly done: { readonly event: string; readonly none: string } | null;
  /** Derives a run's result from its final state and events. */
  outcome(end: Ending): Outcome;
  /** Returns the family's presentation with an algorithm's overrides. */
  shown(declared?: DeclaredPresentation): Presentation;
}

/** The final state of a run and its events. The outcome is derived from them. */
export interface Ending {
  /** The nodes that are alive at the end of the run, in ascending order. */
  readonly alive: readonly NodeId[];
  /** Returns a live node's view. */
  view(node: NodeId): View;
  /** The events of all nodes, ordered by time. */
  readonly events: readonly Emitted[];
}

/** An event that a node emitted, and when. */
export interface Emitted {
  /** The time in milliseconds. */
  readonly at: number;
  /** The node that emitted the event. */
  readonly node: NodeId;
  /** The event. Events from a part of an assembly are wrapped. */
  readonly event: Tagged;
}

/** The result of a run, as plain data. */
export type Outcome =
  /** Election: for each live node, the leader it follows, or null. */
  | { readonly leader: Readonly<Record<NodeId, NodeId | null>> }
  /** Mutual exclusion: all uses of the critical section. */
  | { readonly entries: readonly Entry[] }
  /** Multicast: the messages that each node delivered, in order. */
  | { readonly delivered: Readonly<Record<NodeId, readonly string[]>> }
  /** Consensus: the value that each node decided, or the commands that it decided, in order. */
  | { readonly decided: Readonly<Record<NodeId, string | readonly string[]>> }
  /** Failure detector: the nodes that each live node suspects. */
  | { readonly suspected: Readonly<Record<NodeId, readonly NodeId[]>> }
  /** Any other problem: the role of each live node. */
  | { readonly roles: Readonly<Record<NodeId, string>> };

/** One use of a critical section. Times are in milliseconds. A time is null if the step has not happened. */
export interface Entry {
  /** The node that used the section. */
  readonly node: NodeId;
  /** When the node requested the section. */
  readonly requestedAt: number;
  /** When the node entered. */
  readonly enteredAt: number | null;
  /** When the node left. */
  readonly exitedAt: number | null;
  /** The grant's fencing token. Null if the algorithm does not provide tokens. */
  readonly token: number | null;
}

/** Leader elections. */
export const election: Family = {
  shown: electionShown,
  part: "election",
  name: "election",
  verb: "call",
  count: null,
  initiators: "lowest",
  ask: () => ({ type: "call" }),
  done: { event: "elected", none: "no node was elected" },
  outcome: ({ alive, view }) => ({
    leader: Object.fromEntries(alive.map((node) => [node, view(node).leader ?? null])),
  }),
};

/** Mutual exclusion. */
export const mutualExclusion: Family = {
  shown: mutexShown,
  part: "mutex",
  withWorkload: withMutexWorkload,
  isUsedInNodes: true,
  name: "mutual exclusion",
  verb: "request",
  count: "entries",
  initiators: "all",
  ask: (_node, times) => toWorkload({ type: "use", entries: times }),
  done: { event: "entered", none: "no node entered" },
  outcome({ events }) {
    const entries: { -readonly [K in keyof Entry]: Entry[K] }[] = [];
    const open = (of: NodeId): (typeof entries)[number] | undefined =>
      entries.findLast(({ node, exitedAt }) => node === of && exitedAt === null);
    for (const { at, node, event } of events) {
      const { type, ...said } = unwrapped(event);
      if (type === "needed") entries.push({ node, requestedAt: at, enteredAt: null, exitedAt: null, token: null });
      const entry = open(node);
      if (entry === undefined) continue;
      if (type === "entered") {
        entry.enteredAt = at;
        entry.token = typeof said.token === "number" ? said.token : null;
      } else if (type === "exited") entry.exitedAt = at;
    }
    return { entries };
  },
};

/** Reliable and ordered multicast. */
export const multicast: Family = {
  shown: multicastShown,
  part: "multicast",
  withWorkload: (system, orders) => multicastModel(system, orders),
  name: "multicast",
  verb: "send",
  count: "messages",
  initiators: "all",
  ask: (_node, times) => toWorkload({ type: "send", messages: times }),
  done: { event: "delivered", none: "nothing was delivered" },
  outcome({ alive, events }) {
    const delivered: Record<NodeId, string[]> = Object.fromEntries(alive.map((node) => [node, []]));
    for (const { node, event } of events) {
      const { type, id } = unwrapped(event);
      if (type === "delivered") delivered[node]?.push(String(id));
    }
    return { delivered };
  },
};

/** Consensus on one value. */
export const consensus: Family = {
  shown: consensusShown,
  part: "consensus",
  name: "consensus",
  verb: "propose",
  count: null,
  initiators: "lowest",
  ask: (node) => ({ type: "propose", value: `from ${node}` }) as Tagged,
  done: { event: "decided", none: "nothing was decided" },
  outcome({ events }) {
    const decided: Record<NodeId, string> = {};
    for (const { node, event } of events) {
      const { type, value } = unwrapped(event);
      if (type === "decided") decided[node] = String(value);
    }
    return { decided };
  },
};

/** Consensus on one of the values that all nodes propose. */
export const consensusOfAll: Family = { ...consensus, initiators: "all" };

/** Consensus on a sequence of commands. The decision is a list. */
export const replicatedLog: Family = {
  ...consensus,
  part: "log",
  shown: logShown,
  withWorkload: (system, orders) => withLogClients(system, orders),
  isUsedInNodes: true,
  count: "commands",
  ask: (_node, times) => ({ type: "client", body: { type: "use", commands: times } }) as Tagged,
  outcome({ alive, events }) {
    const decided: Record<NodeId, Map<string, string>> = Object.fromEntries(alive.map((node) => [node, new Map()]));
    for (const { node, event } of events) {
      const { type, command } = unwrapped(event) as { type: string; command?: Command };
      if (type !== "decided" || command === undefined) continue;
      const { client, sequence, operation } = command;
      // A command may be decided twice, or reported again after a restart, but is applied only once.
      const of = decided[node];
      if (of !== undefined && !of.has(`${client}.${sequence}`)) of.set(`${client}.${sequence}`, operation);
    }
    return { decided: Object.fromEntries(Object.entries(decided).map(([node, of]) => [node, [...of.values()]])) };
  },
};

/** Consensus on a transaction that every node can veto. */
export const atomicCommit: Family = {
  ...consensus,
  part: "commit",
  count: "transactions",
  ask: (_node, times) => ({ type: "propose", transactions: times }) as Tagged,
  refuse: () => ({ type: "refuse" }),
};

/** Atomic commit on a replicated log. The commands go to the `commit` part. */
export const replicatedAtomicCommit: Family = {
  ...atomicCommit,
  isUsedInNodes: true,
  ask: (_node, times) => ({ type: "commit", body: { type: "propose", transactions: times } }) as Tagged,
  refuse: () => ({ type: "commit", body: { type: "refuse" } }) as Tagged,
  outcome({ events }) {
    const decided: Record<NodeId, string> = {};
    for (const { node, event } of events) {
      const { type, value } = unwrapped(event);
      // The log part also emits `decided` events.
      if (type === "decided" && typeof value === "string") decided[node] = value;
    }
    return { decided };
  },
};

/** Failure detection. */
export const membership: Family = {
  shown: membershipShown,
  part: "membership",
  name: "membership",
  verb: null,
  count: null,
  initiators: "all",
  ask: () => null,
  done: { event: "suspected", none: "no node was suspected" },
  outcome({ alive, events }) {
    const suspected: Record<NodeId, Set<NodeId>> = Object.fromEntries(alive.map((node) => [node, new Set()]));
    for (const { node, event } of events) {
      const { type, node: other } = unwrapped(event);
      if (type === "suspected") suspected[node]?.add(Number(other));
      if (type === "restored") suspected[node]?.delete(Number(other));
    }
    return { suspected: Object.fromEntries(Object.entries(suspected).map(([node, others]) => [node, [...others]])) };
  },
};

/** Protocols that solve a different problem. The initiators are given the protocol's own command. */
export const custom: Family = {
  shown: customShown,
  part: "protocol",
  name: "a custom problem",
  verb: null,
  count: null,
  initiators: "all",
  ask: () => null,
  done: null,
  outcome: ({ alive, view }) => ({ roles: Object.fromEntries(alive.map((node) => [node, view(node).role])) }),
};

/** Wraps a command for the `workload` part, which every node in a mutual exclusion or multicast model has. */
const toWorkload = (command: object): Tagged => ({ type: "workload", body: command }) as Tagged;
