/** Settings that find seeded bugs. Plain data. */
import type { Adversity } from "./adversity.ts";
import { agreementSettings } from "./agreement.ts";
import { fastSettings } from "./fast.ts";
import { hardenedSettings } from "./hardened-settings.ts";
import { cheapPaxosSettings, multiPaxosSettings } from "./multi-paxos.ts";
import { pbftSettings } from "./pbft.ts";
import { raftSettings } from "./raft-settings.ts";
import { twoPhaseCommitSettings } from "./two-phase-commit.ts";

/** A system that the checker and the simulator run, with and without a bug. */
export interface Setting {
  /** The description on the page. */
  readonly summary: string;
  readonly nodes: number;
  /** The commands of each node. A node receives them in this order, at any time. */
  readonly asks: Readonly<Record<number, readonly object[]>>;
  /** Whether links preserve order. */
  readonly network: "fifo" | "bag";
  /** When timers may expire in the checker. With `quiet`, a timer waits until no message is in transit. */
  readonly timers: "free" | "quiet" | "rounds" | "never";
  readonly crashes: number;
  /** For the checker: whether a crash may interrupt a step. */
  readonly withinStep?: boolean;
  readonly recoveries: number;
  /** In the simulator, any value above 0 duplicates one message in ten. */
  readonly duplications: number;
  /** For the checker: the largest number of timeouts in a run. */
  readonly maxTimeouts?: number;
  /** For the checker: the largest number of moves of a run. */
  readonly maxDepth?: number;
  /** For the checker: the initial state of nodes. By default, all nodes are idle. */
  readonly begin?: "idle" | "together";
  /** For the checker: whether only safety properties are checked. */
  readonly safetyOnly?: boolean;
  /** For the checker: whether a failure detector reports crashes to the mutual exclusion. */
  readonly areSuspected?: boolean;
  readonly losses?: number;
  readonly maxInFlight?: number;
  /** For the simulator: the faults of a run over time. */
  readonly adversity?: Adversity;
}

const call = [{ type: "call" }];
const use = (entries: number): object[] => [{ type: "workload", body: { type: "use", entries } }];
const send = (messages: number): object[] => [{ type: "workload", body: { type: "send", messages } }];
const transaction = [{ type: "propose", transactions: 1 }];
const propose = (value: string): object[] => [{ type: "propose", value }];

const calm = { network: "fifo", timers: "free", crashes: 0, recoveries: 0, duplications: 0 } as const;
/** Each proposer makes one attempt. Without this bound, rounds would continue forever. */
const oneAttempt = { ...calm, maxTimeouts: 0 };

export const settings: Readonly<Record<string, Setting>> = {
  "ring of four": { ...calm, summary: "nodes 0 and 2 call", nodes: 4, asks: { 0: call, 2: call } },
  "ring of six": {
    ...calm,
    summary: "all nodes start an election",
    nodes: 6,
    asks: { 0: call, 1: call, 2: call, 3: call, 4: call, 5: call },
  },
  "election with a crash": {
    ...calm,
    summary: "3 nodes, 0 and 1 call; the crash is detected, and no timer expires while a message is in transit",
    nodes: 3,
    asks: { 0: call, 1: call },
    timers: "quiet",
    crashes: 1,
  },
  "one entry each": { ...calm, summary: "3 nodes", nodes: 3, asks: { 0: use(1), 1: use(1), 2: use(1) } },
  "two entries each": { ...calm, summary: "3 nodes", nodes: 3, asks: { 0: use(2), 1: use(2), 2: use(2) } },
  "three entries each": { ...calm, summary: "2 nodes", nodes: 2, asks: { 0: use(3), 1: use(3) } },
  "a detected crash and a recovery": {
    ...calm,
    summary: "3 nodes, 0 and 1 request; one crashes, which the others detect, and restarts",
    nodes: 3,
    asks: { 0: use(1), 1: use(1) },
    crashes: 1,
    recoveries: 1,
    areSuspected: true,
  },
  "a detected crash just after the start, and a recovery": {
    ...calm,
    summary: "2 nodes start, and request; one crashes, restarts and requests again. Only safety is checked",
    nodes: 2,
    asks: { 0: use(1), 1: [...use(1), ...use(1)] },
    begin: "together",
    crashes: 1,
    recoveries: 1,
    areSuspected: true,
    safetyOnly: true,
  },
  "a detected crash, three requests": {
    ...calm,
    summary: "3 nodes, which request once; one crashes, which the others detect",
    nodes: 3,
    asks: { 0: use(1), 1: use(1), 2: use(1) },
    crashes: 1,
    areSuspected: true,
  },
  "both crash, one restarts": {
    ...calm,
    summary: "2 nodes, which request twice; both crash, which is detected, and one restarts. Only safety is checked",
    nodes: 2,
    asks: { 0: use(2), 1: use(2) },
    crashes: 2,
    recoveries: 1,
    areSuspected: true,
    safetyOnly: true,
  },
  "a ring, a copy": {
    ...calm,
    summary: "3 nodes that start together; a message is duplicated, and two timers expire",
    nodes: 3,
    asks: {},
    duplications: 1,
    maxTimeouts: 2,
    begin: "together",
    safetyOnly: true,
  },
  "a ring, a crash and a recovery": {
    ...calm,
    summary: "3 nodes that start together; one crashes and restarts, and two timers expire",
    nodes: 3,
    asks: {},
    crashes: 1,
    recoveries: 1,
    maxTimeouts: 2,
    begin: "together",
    safetyOnly: true,
  },
  "one message each": {
    ...calm,
    summary: "3 nodes, links without order",
    nodes: 3,
    asks: { 0: send(1), 1: send(1), 2: send(1) },
    network: "bag",
  },
  "two messages and one": {
    ...calm,
    summary: "3 nodes, links without order; one sends two messages, one sends one, one only receives",
    nodes: 3,
    asks: { 0: send(2), 1: send(1) },
    network: "bag",
  },
  "two messages each": {
    ...calm,
    summary: "4 nodes, links without order",
    nodes: 4,
    asks: { 0: send(2), 1: send(2), 2: send(2), 3: send(2) },
    network: "bag",
  },
  "links that duplicate": {
    ...calm,
    summary: "2 nodes, three messages each",
    nodes: 2,
    asks: { 0: send(3), 1: send(3) },
    duplications: 1,
  },
  duel: {
    ...oneAttempt,
    summary: "3 nodes, 0 and 2 propose, once each",
    nodes: 3,
    asks: { 0: propose("x"), 2: propose("y") },
  },
  "duel of three": {
    ...oneAttempt,
    summary: "3 nodes, each proposes once",
    nodes: 3,
    asks: { 0: propose("x"), 1: propose("y"), 2: propose("z") },
  },
  "duel among four": {
    ...oneAttempt,
    summary: "4 nodes, 0 and 3 propose, once each",
    nodes: 4,
    asks: { 0: propose("x"), 3: propose("y") },
  },
  "duel with a crash": {
    ...oneAttempt,
    summary: "3 nodes, 0 and 2 propose, once each; a node crashes and restarts",
    nodes: 3,
    asks: { 0: propose("x"), 2: propose("y") },
    crashes: 1,
    recoveries: 1,
  },
  "a transaction, a crash and a recovery": {
    ...calm,
    summary: "3 nodes, 0 proposes a transaction, 2 may decide to vote no; a node crashes and restarts",
    nodes: 3,
    asks: { 0: transaction, 2: [{ type: "refuse" }] },
    crashes: 1,
    recoveries: 1,
    maxInFlight: 4,
    safetyOnly: true,
  },
  "a transaction, a crash, a recovery and a loss": {
    ...calm,
    summary: "3 nodes, 0 proposes a transaction; a node crashes and restarts, and a message is lost",
    nodes: 3,
    asks: { 0: transaction },
    crashes: 1,
    recoveries: 1,
    losses: 1,
    maxInFlight: 4,
    safetyOnly: true,
  },
  "two transactions, a crash and a recovery": {
    ...calm,
    summary: "3 nodes, 0 proposes one transaction and then another; it crashes and restarts",
    nodes: 3,
    asks: { 0: [...transaction, ...transaction] },
    timers: "quiet",
    crashes: 1,
    recoveries: 1,
    safetyOnly: true,
  },
  ...agreementSettings,
  ...hardenedSettings,
  ...cheapPaxosSettings,
  ...fastSettings,
  ...multiPaxosSettings,
  ...pbftSettings,
  ...raftSettings,
  ...twoPhaseCommitSettings,
};
