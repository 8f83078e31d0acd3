/** Settings that find bugs in the hardened protocols. Plain data. */
import type { Setting } from "./settings.ts";

const use = (entries: number): object[] => [{ type: "workload", body: { type: "use", entries } }];
const entries = (times: number): object[] => Array.from({ length: times }, () => use(1)[0] as object);
const send = (messages: number): object[] => [{ type: "workload", body: { type: "send", messages } }];
const sendings = (times: number): object[] => Array.from({ length: times }, () => send(1)[0] as object);
const suspect = (node: number): object[] => [{ type: "views", body: { type: "suspect", node } }];
const call = [{ type: "call" }];

const calm = { network: "fifo", timers: "never", crashes: 0, recoveries: 0, duplications: 0 } as const;
/** Settings for virtual time. All nodes start at once. */
const timed = { ...calm, timers: "free", begin: "together" } as const;

export const hardenedSettings: Readonly<Record<string, Setting>> = {
  "one serves, any order": {
    ...calm,
    summary: "3 nodes, which enter once and leave at any time; messages are reordered, and one is duplicated",
    nodes: 3,
    asks: {},
    network: "bag",
    duplications: 1,
    safetyOnly: true,
  },
  "copies that are several entries late": {
    ...timed,
    summary:
      "3 nodes in virtual time, which enter often and leave soon; messages are reordered, and duplicates arrive late",
    nodes: 3,
    asks: { 0: entries(16), 1: entries(16), 2: entries(16) },
    network: "bag",
    duplications: 1,
    adversity: {
      seeds: 100,
      spanMs: 6_000,
      calmMs: 0,
      mishaps: ["cut"],
      count: 0,
      lastingMs: [1, 1],
      delayMs: { logNormal: { medianMs: 15, sigma: 1.7 } },
    },
  },
  "the server crashes": {
    ...calm,
    summary:
      "3 nodes, which enter once and leave at any time; one crashes, and if it was the server all nodes learn its successor",
    nodes: 3,
    asks: {},
    crashes: 1,
    safetyOnly: true,
  },
  "locks in adversity": {
    ...timed,
    summary:
      "3 nodes in virtual time; each requests 3 times and stays in the critical section for 1.5 s; clocks drift by 5 %, nodes are cut off for a while or crash and restart, links are slow for a while",
    nodes: 3,
    asks: { 0: entries(3), 1: entries(3), 2: entries(3) },
    adversity: {
      seeds: 30,
      spanMs: 10_000,
      calmMs: 0,
      mishaps: ["restart", "slow isolation", "slow isolation", "cut"],
      count: 5,
      lastingMs: [200, 3_500],
      slowMs: [100, 1_300],
      drift: 0.05,
    },
  },
  "locks, a restart": {
    ...timed,
    summary:
      "3 nodes in virtual time; each requests 4 times and stays in the critical section for 2.5 s; one crashes and restarts at once",
    nodes: 3,
    asks: { 0: entries(4), 1: entries(4), 2: entries(4) },
    adversity: {
      seeds: 20,
      spanMs: 3_000,
      calmMs: 0,
      mishaps: ["restart"],
      count: 3,
      lastingMs: [1, 200],
    },
  },
  "token ring in adversity": {
    ...timed,
    summary:
      "3 nodes in virtual time; each requests 3 times and stays in the critical section for 1.5 s; links are cut for a while, nodes crash and restart at once",
    nodes: 3,
    asks: { 0: entries(3), 1: entries(3), 2: entries(3) },
    adversity: {
      seeds: 100,
      spanMs: 6_000,
      calmMs: 0,
      mishaps: ["restart", "restart", "cut"],
      count: 20,
      lastingMs: [1_000, 2_500],
      downMs: [1, 20],
      delayMs: [1, 4],
      drift: 0.05,
    },
  },
  "locks, messages lost": {
    ...timed,
    summary: "3 nodes in virtual time; each requests 3 times; at first one message in five is lost, later none",
    nodes: 3,
    asks: { 0: entries(3), 1: entries(3), 2: entries(3) },
    adversity: {
      seeds: 5,
      spanMs: 8_000,
      calmMs: 24_000,
      mishaps: ["restart"],
      count: 1,
      lastingMs: [200, 3_500],
      lossRate: 0.2,
    },
  },
  "two candidates": {
    ...calm,
    summary: "3 nodes, 0 and 2 request votes, each for an epoch",
    nodes: 3,
    asks: { 0: call, 2: call },
  },
  "two candidates, one restarts": {
    ...calm,
    summary: "3 nodes, 0 and 2 request votes, each for an epoch; one crashes and restarts",
    nodes: 3,
    asks: { 0: call, 2: call },
    crashes: 1,
    recoveries: 1,
  },
  "three elections, a time-out": {
    ...calm,
    summary: "3 nodes, 0 requests votes twice, 2 once; a timer expires at any time",
    nodes: 3,
    asks: { 0: [...call, ...call], 2: call },
    timers: "free",
    maxTimeouts: 1,
  },
  "elections in adversity": {
    ...timed,
    summary:
      "3 nodes in virtual time; clocks drift by 5 %, nodes are cut off for a while or crash and restart, links are slow for a while",
    nodes: 3,
    asks: {},
    adversity: {
      seeds: 400,
      spanMs: 4_000,
      calmMs: 0,
      mishaps: ["restart", "isolation", "slow isolation", "slow link", "cut"],
      count: 10,
      lastingMs: [400, 1_500],
      downMs: [1, 50],
      delayMs: [1, 4],
      slowMs: [60, 390],
      drift: 0.05,
    },
  },
  "a node stops": {
    ...timed,
    summary: "3 nodes in virtual time; one crashes and never restarts",
    nodes: 3,
    asks: {},
    adversity: { seeds: 20, spanMs: 2_000, calmMs: 3_000, mishaps: ["end"], count: 1, lastingMs: [0, 0] },
  },
  "one sends, a message is lost": {
    ...calm,
    summary: "3 nodes, one sends, a message is lost, in any order; timers wait until no message is in transit",
    nodes: 3,
    asks: { 0: send(1) },
    network: "bag",
    timers: "quiet",
    losses: 1,
  },
  "two messages, a loss": {
    ...calm,
    summary:
      "2 nodes, one sends two messages, a message is lost and one is duplicated, in any order; timers wait until no message is in transit",
    nodes: 2,
    asks: { 0: send(2) },
    network: "bag",
    timers: "quiet",
    losses: 1,
    duplications: 1,
  },
  "one member of a view crashes": {
    ...calm,
    summary: "3 nodes in one view; one crashes, the others detect it, and timers wait until no message is in transit",
    nodes: 3,
    asks: {},
    timers: "quiet",
    crashes: 1,
  },
  "two suspect each other": {
    ...calm,
    summary: "3 nodes in one view; 0 and 2 suspect each other; two timers expire at any time",
    nodes: 3,
    asks: { 0: suspect(2), 2: suspect(0) },
    timers: "free",
    maxTimeouts: 2,
    safetyOnly: true,
  },
  "groups in adversity": {
    ...timed,
    summary:
      "3 nodes in virtual time; each sends 4 messages; one message in five is lost, nodes are cut off for a while, links are slow for a while",
    nodes: 3,
    asks: { 0: sendings(4), 1: sendings(4), 2: sendings(4) },
    adversity: {
      seeds: 20,
      spanMs: 2_500,
      calmMs: 3_000,
      mishaps: ["isolation", "slow link", "cut"],
      count: 3,
      lastingMs: [300, 1_000],
      slowMs: [50, 400],
      lossRate: 0.2,
    },
  },
  "orders in adversity": {
    ...timed,
    summary:
      "3 nodes in virtual time; each sends 4 messages; one message in five is lost, nodes are cut off for a while, links are slow for a while",
    nodes: 3,
    asks: { 0: sendings(4), 1: sendings(4), 2: sendings(4) },
    adversity: {
      seeds: 1,
      spanMs: 2_500,
      calmMs: 3_000,
      mishaps: ["isolation", "slow link", "cut"],
      count: 3,
      lastingMs: [300, 1_000],
      slowMs: [50, 400],
      lossRate: 0.2,
    },
  },
  "heartbeats in adversity": {
    ...timed,
    summary: "3 nodes in virtual time; two are cut off for a while",
    nodes: 3,
    asks: {},
    adversity: { seeds: 4, spanMs: 3_000, calmMs: 3_000, mishaps: ["isolation"], count: 2, lastingMs: [800, 1_500] },
  },
  "beats, one ends": {
    ...timed,
    summary: "3 nodes in virtual time; one crashes and never restarts",
    nodes: 3,
    asks: {},
    adversity: { seeds: 4, spanMs: 1_000, calmMs: 3_000, mishaps: ["end"], count: 1, lastingMs: [0, 0] },
  },
  "a ring, two restart": {
    ...timed,
    summary: "6 nodes in virtual time; one crashes and never restarts, others crash and restart",
    nodes: 6,
    asks: {},
    adversity: {
      seeds: 4,
      spanMs: 10_000,
      calmMs: 10_000,
      mishaps: ["end", "restart"],
      count: 2,
      lastingMs: [200, 4_000],
    },
  },
  "tokens, one restarts": {
    ...timed,
    summary: "10 nodes in virtual time; one crashes and restarts",
    nodes: 10,
    asks: {},
    adversity: { seeds: 6, spanMs: 15_000, calmMs: 30_000, mishaps: ["restart"], count: 1, lastingMs: [200, 8_000] },
  },
};
