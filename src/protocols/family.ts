/**
 * What algorithms of one family are asked to do, and what comes out of it, in the same words for all: command line,
 * scenarios, benchmarks and studio treat every algorithm of a family alike.
 */
import type { NodeId, Property, Tagged, View } from "../core/protocol.ts";
import { unwrapped } from "../core/wrapping.ts";
import type { Command } from "./consensus/family/replicated-log.ts";
import { withLogClients } from "./consensus/family/systems.ts";
import {
  consensusShown,
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

export interface Family {
  /** What the algorithm is called among the parts of a system. */
  readonly part: string;
  /** The system with the family's workload at every node; absent where initiators command the algorithm itself. */
  withWorkload?(system: System, orders: readonly Property<never>[]): AnyMaker;
  /** Whether real processes have the workload, too. */
  readonly isUsedInNodes?: true;
  readonly name: "election" | "mutual exclusion" | "multicast" | "consensus" | "membership";
  /** What initiators do, as in `--call 4`; null where there is nothing to do. */
  readonly verb: "call" | "request" | "send" | "propose" | null;
  /** The word for how often, where that means something. */
  readonly count: "entries" | "messages" | "commands" | "transactions" | null;
  /** The default initiators: the lowest alive node, or all. */
  readonly initiators: "lowest" | "all";
  /** The command that makes a node do its work, so many times. Null where there is none. */
  ask(node: NodeId, times: number): Tagged | null;
  /** The command that makes a node vote no, as in `--vote-no 2`; absent where nobody votes. */
  refuse?(): Tagged;
  /** What a node, or a part of it, emits where the family's work is done, and how one says that nobody ever did. */
  readonly done: { readonly event: string; readonly none: string };
  outcome(end: Ending): Outcome;
  /** How its algorithms are shown, where one does not declare otherwise. */
  shown(declared?: DeclaredPresentation): Presentation;
}

/** How a run ended. */
export interface Ending {
  readonly alive: readonly NodeId[];
  view(node: NodeId): View;
  /** What the nodes emitted, in the order of time, which is in milliseconds. */
  readonly events: readonly Emitted[];
}

export interface Emitted {
  readonly at: number;
  readonly node: NodeId;
  readonly event: Tagged;
}

/** Plain data, for people and machines. */
export type Outcome =
  | { readonly leader: Readonly<Record<NodeId, NodeId | null>> }
  | { readonly entries: readonly Entry[] }
  | { readonly delivered: Readonly<Record<NodeId, readonly string[]>> }
  | { readonly decided: Readonly<Record<NodeId, string | readonly string[]>> }
  | { readonly suspected: Readonly<Record<NodeId, readonly NodeId[]>> };

/** One use of a critical section; null for what has not happened. Times in milliseconds. */
export interface Entry {
  readonly node: NodeId;
  readonly requestedAt: number;
  readonly enteredAt: number | null;
  readonly exitedAt: number | null;
  /** The fencing token of the grant, where the algorithm gives one. */
  readonly token: number | null;
}

export const election: Family = {
  shown: electionShown,
  part: "election",
  name: "election",
  verb: "call",
  count: null,
  initiators: "lowest",
  ask: () => ({ type: "call" }),
  done: { event: "elected", none: "nobody was elected" },
  outcome: ({ alive, view }) => ({
    leader: Object.fromEntries(alive.map((node) => [node, view(node).leader ?? null])),
  }),
};

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
  done: { event: "entered", none: "nobody entered" },
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

/** A consensus to which everybody brings a value. */
export const consensusOfAll: Family = { ...consensus, initiators: "all" };

/** Consensus on one command after the other: what is decided is a list. */
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
      // What is decided twice, or told anew after a restart, is applied once.
      const of = decided[node];
      if (of !== undefined && !of.has(`${client}.${sequence}`)) of.set(`${client}.${sequence}`, operation);
    }
    return { decided: Object.fromEntries(Object.entries(decided).map(([node, of]) => [node, [...of.values()]])) };
  },
};

/** A consensus in which everybody has a veto. */
export const atomicCommit: Family = {
  ...consensus,
  part: "commit",
  count: "transactions",
  ask: (_node, times) => ({ type: "propose", transactions: times }) as Tagged,
  refuse: () => ({ type: "refuse" }),
};

/** The same by a system that has a log: its part `commit` is asked. */
export const replicatedAtomicCommit: Family = {
  ...atomicCommit,
  isUsedInNodes: true,
  ask: (_node, times) => ({ type: "commit", body: { type: "propose", transactions: times } }) as Tagged,
  refuse: () => ({ type: "commit", body: { type: "refuse" } }) as Tagged,
  outcome({ events }) {
    const decided: Record<NodeId, string> = {};
    for (const { node, event } of events) {
      const { type, value } = unwrapped(event);
      if (type === "decided" && typeof value === "string") decided[node] = value; // The log decides, too.
    }
    return { decided };
  },
};

export const membership: Family = {
  shown: membershipShown,
  part: "membership",
  name: "membership",
  verb: null,
  count: null,
  initiators: "all",
  ask: () => null,
  done: { event: "suspected", none: "nobody was suspected" },
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

/** The model of a mutual exclusion or multicast has a part `workload` at every node. */
const toWorkload = (command: object): Tagged => ({ type: "workload", body: command }) as Tagged;
