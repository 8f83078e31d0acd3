/** Where seeded bugs are looked for: all of it plain data. */
import type { Adversity } from "./adversity.ts";
import { agreementSettings } from "./agreement.ts";
import { fastSettings } from "./fast.ts";
import { hardenedSettings } from "./hardened-settings.ts";
import { cheapPaxosSettings, multiPaxosSettings } from "./multi-paxos.ts";
import { pbftSettings } from "./pbft.ts";
import { raftSettings } from "./raft-settings.ts";
import { twoPhaseCommitSettings } from "./two-phase-commit.ts";

/** What is run, on the protocol with the bug and on the one without, by checker and simulator alike. */
export interface Setting {
  /** In words, for the page. */
  readonly summary: string;
  readonly nodes: number;
  /** What each node is told by the application, in this order, at any time. */
  readonly asks: Readonly<Record<number, readonly object[]>>;
  /** Whether links keep the order. */
  readonly network: "fifo" | "bag";
  /** For the checker: whether a timer waits until no message is on its way. */
  readonly timers: "free" | "quiet" | "rounds" | "never";
  readonly crashes: number;
  /** For the checker: whether crashes strike within a step, too. */
  readonly withinStep?: boolean;
  readonly recoveries: number;
  /** In the simulator, one message in ten is duplicated if there are any. */
  readonly duplications: number;
  /** For the checker. */
  readonly maxTimeouts?: number;
  /** For the checker: after how many moves a run ends. */
  readonly maxDepth?: number;
  /** For the checker: where nodes begin; all idle if left out. */
  readonly begin?: "idle" | "together";
  /** For the checker: whether only what holds after every step is asked. */
  readonly safetyOnly?: boolean;
  /** For the checker: whether nodes are told of crashes by a failure detector beside their mutual exclusion. */
  readonly areSuspected?: boolean;
  readonly losses?: number;
  readonly maxInFlight?: number;
  /** For the simulator alone: what goes wrong, in time. */
  readonly adversity?: Adversity;
}

const call = [{ type: "call" }];
const use = (entries: number): object[] => [{ type: "workload", body: { type: "use", entries } }];
const send = (messages: number): object[] => [{ type: "workload", body: { type: "send", messages } }];
const transaction = [{ type: "propose", transactions: 1 }];
const propose = (value: string): object[] => [{ type: "propose", value }];

const calm = { network: "fifo", timers: "free", crashes: 0, recoveries: 0, duplications: 0 } as const;
/** Each proposer makes one attempt: without this bound rounds would go on for ever. */
const oneAttempt = { ...calm, maxTimeouts: 0 };

export const settings: Readonly<Record<string, Setting>> = {
  "ring of four": { ...calm, summary: "nodes 0 and 2 call", nodes: 4, asks: { 0: call, 2: call } },
  "ring of six": {
    ...calm,
    summary: "everybody calls",
    nodes: 6,
    asks: { 0: call, 1: call, 2: call, 3: call, 4: call, 5: call },
  },
  "election with a crash": {
    ...calm,
    summary: "3 nodes, 0 and 1 call; the crash is noticed, and no timer runs out while a message is on its way",
    nodes: 3,
    asks: { 0: call, 1: call },
    timers: "quiet",
    crashes: 1,
  },
  "one entry each": { ...calm, summary: "3 nodes", nodes: 3, asks: { 0: use(1), 1: use(1), 2: use(1) } },
  "two entries each": { ...calm, summary: "3 nodes", nodes: 3, asks: { 0: use(2), 1: use(2), 2: use(2) } },
  "three entries each": { ...calm, summary: "2 nodes", nodes: 2, asks: { 0: use(3), 1: use(3) } },
  "a crash that is noticed, and a recovery": {
    ...calm,
    summary: "3 nodes, of which 0 and 1 want in; one crashes, which is noticed, and comes back",
    nodes: 3,
    asks: { 0: use(1), 1: use(1) },
    crashes: 1,
    recoveries: 1,
    areSuspected: true,
  },
  "a crash that is noticed, just after the start, and a recovery": {
    ...calm,
    summary:
      "2 nodes start, and want in; one crashes and comes back, and wants in. What is owed in the end is not asked",
    nodes: 2,
    asks: { 0: use(1), 1: [...use(1), ...use(1)] },
    begin: "together",
    crashes: 1,
    recoveries: 1,
    areSuspected: true,
    safetyOnly: true,
  },
  "a crash that is noticed, three want in": {
    ...calm,
    summary: "3 nodes, which want in once; one crashes, which is noticed",
    nodes: 3,
    asks: { 0: use(1), 1: use(1), 2: use(1) },
    crashes: 1,
    areSuspected: true,
  },
  "both crash, one comes back": {
    ...calm,
    summary:
      "2 nodes, which want in twice; both crash, which is noticed, and one comes back. What is owed in the end is not asked",
    nodes: 2,
    asks: { 0: use(2), 1: use(2) },
    crashes: 2,
    recoveries: 1,
    areSuspected: true,
    safetyOnly: true,
  },
  "a ring, a copy": {
    ...calm,
    summary: "3 nodes that start together; a message arrives twice, and two timers run out",
    nodes: 3,
    asks: {},
    duplications: 1,
    maxTimeouts: 2,
    begin: "together",
    safetyOnly: true,
  },
  "a ring, a crash and a recovery": {
    ...calm,
    summary: "3 nodes that start together; one crashes and comes back, and two timers run out",
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
    summary: "3 nodes, links of no order",
    nodes: 3,
    asks: { 0: send(1), 1: send(1), 2: send(1) },
    network: "bag",
  },
  "two messages and one": {
    ...calm,
    summary: "3 nodes, links of no order; one sends two messages, one sends one, one listens",
    nodes: 3,
    asks: { 0: send(2), 1: send(1) },
    network: "bag",
  },
  "two messages each": {
    ...calm,
    summary: "4 nodes, links of no order",
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
    summary: "3 nodes, 0 and 2 propose, once each; a node crashes and comes back",
    nodes: 3,
    asks: { 0: propose("x"), 2: propose("y") },
    crashes: 1,
    recoveries: 1,
  },
  "a transaction, a crash and a recovery": {
    ...calm,
    summary: "3 nodes, 0 proposes a transaction, 2 may come to vote no; a node crashes and comes back",
    nodes: 3,
    asks: { 0: transaction, 2: [{ type: "refuse" }] },
    crashes: 1,
    recoveries: 1,
    maxInFlight: 4,
    safetyOnly: true,
  },
  "a transaction, a crash, a recovery and a loss": {
    ...calm,
    summary: "3 nodes, 0 proposes a transaction; a node crashes and comes back, and a message is lost",
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
    summary: "3 nodes, 0 proposes a transaction, and another one; it crashes and comes back",
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
