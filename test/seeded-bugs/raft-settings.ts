/** Settings that find bugs in Raft. Plain data. */
import { snapshotOf } from "../../src/protocols/consensus/family/replicated-log.ts";
import type { Adversity } from "./adversity.ts";
import type { Setting } from "./settings.ts";

const calm = {
  network: "fifo",
  timers: "free",
  begin: "together",
  crashes: 0,
  recoveries: 0,
  duplications: 0,
} as const;

const propose = (client: number, sequence: number): object => ({
  type: "propose",
  command: { client, sequence, operation: `${client}.${sequence}` },
});
const commands = (client: number, count: number): object[] =>
  Array.from({ length: count }, (_, i) => propose(client, i + 1));
const compactions = (...indices: number[]): object[] =>
  indices.map((index) => ({ type: "compact", index, snapshot: snapshotOf(`all up to ${index}`, 5) }));
const change = (...voters: number[]): object => ({ type: "reconfigure", voters, learners: [] });

const adversity: Adversity = {
  seeds: 400,
  spanMs: 4_000,
  calmMs: 0,
  mishaps: ["restart", "restart", "cut", "isolation"],
  count: 12,
  lastingMs: [50, 900],
  delayMs: [1, 20],
};

export const raftSettings: Readonly<Record<string, Setting>> = {
  elections: {
    ...calm,
    summary: "3 nodes that start together; two become candidates",
    nodes: 3,
    asks: {},
    maxTimeouts: 2,
  },
  "elections with a crash": {
    ...calm,
    summary: "3 nodes that start together; two become candidates, and one crashes and restarts",
    nodes: 3,
    asks: {},
    crashes: 1,
    recoveries: 1,
    maxTimeouts: 2,
  },
  "a command and elections": {
    ...calm,
    summary: "3 nodes that start together; 0 and 1 propose; two become candidates",
    nodes: 3,
    asks: { 0: commands(0, 1), 1: commands(1, 1) },
    maxTimeouts: 2,
  },
  "figure 8": {
    ...calm,
    summary: "3 nodes in the paper's figure 8: 0 is a candidate in term 4, and 2, with an entry of term 3, in term 5",
    nodes: 3,
    asks: {},
    maxTimeouts: 2,
  },
  "a read elsewhere": {
    ...calm,
    summary:
      "3 nodes; 0 leads, and a follower becomes a candidate; a command is decided, and the others that know of it send 0 a read",
    nodes: 3,
    asks: { 1: commands(1, 1) },
    maxTimeouts: 1,
  },
  "a read while a configuration is joint": {
    ...calm,
    summary:
      "3 nodes; 0 leads and becomes the only voter, and a follower becomes a candidate; a command is decided, and the others that know of it send 0 a read",
    nodes: 3,
    asks: { 0: [{ type: "reconfigure", voters: [0], learners: [1, 2] }], 1: commands(1, 1) },
    maxTimeouts: 1,
    maxDepth: 15,
  },
  "a change whose new voter leads": {
    ...calm,
    summary: "3 nodes; 0 leads, proposes and becomes the only voter; one becomes a candidate",
    nodes: 3,
    asks: { 0: [propose(0, 1), { type: "reconfigure", voters: [0], learners: [1, 2] }] },
    maxTimeouts: 1,
  },
  "leases and clocks that drift": {
    ...calm,
    summary:
      "3 nodes in virtual time whose clocks drift by up to three tenths, which leases allow for; they propose and are cut off for a while",
    nodes: 3,
    asks: { 0: commands(0, 8), 1: commands(1, 8), 2: commands(2, 8) },
    adversity: { ...adversity, seeds: 100, mishaps: ["isolation"], delayMs: [0, 2], drift: 0.3 },
  },
  "within a lease": {
    ...calm,
    summary:
      "3 nodes; 0 leads and has no link to 2, within one lease: no promise and no lease ends; two other timers expire, and 0 receives a read",
    nodes: 3,
    network: "bag",
    asks: { 0: [{ type: "read", read: 1 }] },
    maxTimeouts: 2,
  },
  "a read of the next leader": {
    ...calm,
    summary: "3 nodes; 0 leads and proposes, and 1 receives a read; one becomes a candidate",
    nodes: 3,
    asks: { 0: commands(0, 1), 1: [{ type: "read", read: 0 }] },
    maxTimeouts: 1,
  },
  "a change that is taken back": {
    ...calm,
    summary: "3 nodes; 0 leads and changes the voters to two; one becomes a candidate",
    nodes: 3,
    asks: { 0: [{ type: "reconfigure", voters: [0, 1], learners: [2] }] },
    maxTimeouts: 1,
  },
  "a snapshot over a conflict": {
    ...calm,
    summary:
      "3 nodes; 0 leads and takes a snapshot, and 2 has two entries that conflict with it; one becomes a candidate",
    nodes: 3,
    asks: { 0: [...compactions(2), propose(0, 1)] },
    maxTimeouts: 1,
  },
  "pre-votes": {
    ...calm,
    summary: "3 nodes that start together, with pre-votes and heartbeats; two timers expire",
    nodes: 3,
    asks: {},
    maxTimeouts: 2,
  },
  "commands in adversity": {
    ...calm,
    summary:
      "5 nodes in virtual time; three of them propose eight times; nodes crash and restart, or are cut off for a while",
    nodes: 5,
    asks: { 0: commands(0, 8), 1: commands(1, 8), 2: commands(2, 8) },
    adversity,
  },
  "learners in adversity": {
    ...calm,
    summary:
      "5 nodes in virtual time, two of them learners; voters propose, crash and restart, or are cut off for a while",
    nodes: 5,
    asks: { 0: commands(0, 8), 1: commands(1, 8), 2: commands(2, 8) },
    adversity,
  },
  "snapshots in adversity": {
    ...calm,
    summary: "the same as commands in adversity, with snapshots",
    nodes: 5,
    asks: {
      0: [...commands(0, 8), ...compactions(3, 5, 7)],
      1: [...commands(1, 8), ...compactions(3, 5, 7)],
      2: [...commands(2, 8), ...compactions(3, 5, 7)],
    },
    adversity,
  },
  "members change in adversity": {
    ...calm,
    summary:
      "5 nodes in virtual time, which propose and change their voters; they crash and restart, or are cut off for a while",
    nodes: 5,
    asks: {
      0: [change(0, 1, 2), ...commands(0, 4), change(0, 1, 2, 3, 4)],
      1: [change(1, 2, 3), ...commands(1, 4), change(0, 3, 4)],
      2: [change(2, 3, 4), ...commands(2, 4), change(0, 1, 4)],
      3: [change(0, 1), change(3, 4)],
      4: [change(2), change(0, 1, 2, 3, 4)],
    },
    adversity,
  },
  "members change often": {
    ...calm,
    summary:
      "5 nodes in virtual time, which change their voters repeatedly; they crash and restart, or are cut off for a while",
    nodes: 5,
    asks: {
      0: [change(0, 1, 2), ...commands(0, 4), change(0, 3, 4), change(0), change(0, 2, 4)],
      1: [change(1, 2, 3), ...commands(1, 4), change(0, 1, 4), change(1), change(0, 1, 2, 3, 4)],
      2: [change(2, 3, 4), ...commands(2, 4), change(0, 1, 2), change(2), change(1, 2)],
      3: [change(0, 1), change(3, 4), change(3), change(1, 3, 4), change(3)],
      4: [change(2, 4), change(4), change(0, 1, 2, 3, 4), change(4, 3), change(4)],
    },
    adversity: { ...adversity, spanMs: 2_500, mishaps: ["restart", "isolation", "isolation", "cut"], count: 16 },
  },
};
