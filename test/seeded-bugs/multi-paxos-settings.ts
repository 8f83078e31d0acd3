/** Where bugs of Multi-Paxos are looked for: all of it plain data. */
import { snapshotOf } from "../../src/protocols/consensus/family/replicated-log.ts";
import type { Adversity } from "./adversity.ts";
import type { Setting } from "./settings.ts";

const use = (commands: number): object => ({ type: "client", body: { type: "use", commands } });

const proposed = (client: number, sequence = 1): object => ({
  type: "propose",
  command: { client, sequence, operation: `append ${client}` },
});
/** Commands, and a change of members among them; snapshots are taken as soon as there is anything to take them of. */
const changing = (client: number, ...voters: number[]): object[] => [
  ...[1, 2, 3].map((sequence) => proposed(client, sequence)),
  { type: "reconfigure", voters, learners: [0, 1, 2, 3, 4].filter((node) => !voters.includes(node)) },
  ...[4, 5, 6].map((sequence) => proposed(client, sequence)),
  ...[4, 8, 12].map((index) => ({ type: "compact", index, snapshot: snapshotOf(`all up to ${index}`) })),
];
const adversity: Adversity = {
  seeds: 300,
  spanMs: 3_000,
  calmMs: 0,
  mishaps: ["restart", "restart", "cut", "isolation"],
  count: 14,
  lastingMs: [50, 900],
  downMs: [1, 200],
  delayMs: [1, 30],
  lossRate: 0.1,
};

const calm = { network: "bag", timers: "free", crashes: 0, recoveries: 0, duplications: 0 } as const;

export const multiPaxosSettings: Readonly<Record<string, Setting>> = {
  "a log in adversity": {
    ...calm,
    summary:
      "5 nodes in virtual time, of which three propose; nodes crash and are back or are cut off, and messages are lost",
    nodes: 5,
    asks: { 0: [use(8), use(4)], 1: [use(8), use(4)], 2: [use(8), use(4)] },
    adversity,
  },
  "a log whose leaders change often": {
    ...calm,
    summary:
      "3 nodes in virtual time whose clocks are wrong by up to four fifths, so that leases mean nothing; all propose, crash for a moment, are cut off, and messages are lost",
    nodes: 3,
    asks: { 0: [use(30)], 1: [use(30)], 2: [use(30)] },
    adversity: { ...adversity, seeds: 250, drift: 0.8, count: 40, lastingMs: [20, 200], downMs: [1, 20] },
  },
  "members change, and snapshots are taken": {
    ...calm,
    summary:
      "5 nodes in virtual time, which propose, change their voters and take snapshots; nodes restart or are cut off, and messages are lost",
    nodes: 5,
    asks: {
      0: changing(0, 0, 1, 2),
      1: changing(1, 1, 2, 3),
      2: changing(2, 0, 2, 3, 4),
      3: changing(3, 0, 1, 2, 3, 4),
      4: changing(4, 2, 3, 4),
    },
    adversity,
  },
  "two lead, a crash": {
    ...calm,
    summary:
      "3 nodes, of which 0 and 1 propose a command; a node crashes and comes back, no timer runs out, and at most seven messages are on their way",
    nodes: 3,
    network: "fifo",
    asks: { 0: [proposed(0)], 1: [proposed(1)] },
    crashes: 1,
    recoveries: 1,
    maxTimeouts: 0,
    maxInFlight: 7,
    safetyOnly: true,
  },
  "a slot of two ballots": {
    ...calm,
    summary:
      "3 nodes that have accepted something in slot 1, node 0 in ballot 1, the others in ballot 2; node 0 proposes a command",
    nodes: 3,
    network: "fifo",
    asks: { 0: [proposed(0)] },
    maxTimeouts: 2,
  },
};
