/** Bugs in Multi-Paxos. */
import { snapshotOf } from "../../src/protocols/consensus/family/replicated-log.ts";
import type { Adversity } from "./adversity.ts";
import { type Change, foundBy } from "./seeded-bug.ts";
import type { Setting } from "./settings.ts";

const use = (commands: number): object => ({ type: "client", body: { type: "use", commands } });

const proposed = (client: number, sequence = 1): object => ({
  type: "propose",
  command: { client, sequence, operation: `append ${client}` },
});
/** Commands that include a change of members. Snapshots are taken as soon as possible. */
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
      "5 nodes in virtual time; three of them propose; nodes crash and restart or are cut off, and messages are lost",
    nodes: 5,
    asks: { 0: [use(8), use(4)], 1: [use(8), use(4)], 2: [use(8), use(4)] },
    adversity,
  },
  "a log whose leaders change often": {
    ...calm,
    summary:
      "3 nodes in virtual time whose clocks drift by up to four fifths, so leases are useless; all nodes propose, crash for a moment and are cut off, and messages are lost",
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
      "3 nodes; 0 and 1 propose a command; a node crashes and restarts, no timer expires, and at most seven messages are in transit",
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
      "3 nodes that have accepted a value in slot 1: node 0 in ballot 1, the others in ballot 2; node 0 proposes a command",
    nodes: 3,
    network: "fifo",
    asks: { 0: [proposed(0)] },
    maxTimeouts: 2,
  },
};

const FOLDER = "src/protocols/consensus/multi-paxos";
const DECISIONS = `${FOLDER}/decisions.ts`;
const PHASE_TWO = `${FOLDER}/leadership.ts`;

const whereLeadersChange = {
  ...foundBy("simulator", "a log whose leaders change often", "agreement"),
} as const;
const inAdversity = { by: "simulator", setting: "a log in adversity", property: "one value per slot" } as const;

export const multiPaxosBugs: readonly Change[] = [
  {
    name: "slot-not-journaled",
    summary: "an acceptance is sent before it is journaled",
    file: DECISIONS,
    find: `  ctx.persist({ type: "accepted", slot, ...proposal, decided: state.decided });\n`,
    replace: ``,
    ...inAdversity,
  },
  {
    name: "takes-nothing-over",
    summary: "a new leader proposes its own commands in slots for which promises reported others",
    file: PHASE_TWO,
    find: `  if (found !== undefined) return found.value;\n`,
    replace: ``,
    ...inAdversity,
  },
  {
    name: "any-ballot-decided",
    summary: "a leader's notice also decides values that were accepted from an earlier leader",
    file: DECISIONS,
    find: `state.log[slot] !== undefined && isSame(state.log[slot].ballot, ballot)`,
    replace: `state.log[slot] !== undefined`,
    ...inAdversity,
  },
  {
    name: "rewritten-without-the-tail",
    summary: "the journal that is rewritten with a snapshot lacks the accepted values after it",
    file: DECISIONS,
    find: `{ type: "promised", ballot: promised }, ...accepted]`,
    replace: `{ type: "promised", ballot: promised }, ...accepted.slice(accepted.length)]`,
    ...whereLeadersChange,
  },
];

export const multiPaxosWithTwoBallots: readonly Change[] = [
  {
    name: "any-found-value",
    summary: "a new leader takes the first value that promises report for a slot, not the value of the highest ballot",
    file: `${FOLDER}/phase-one.ts`,
    find: `known === undefined || isBelow(known.ballot, proposal.ballot)`,
    replace: `known === undefined || isBelow(proposal.ballot, proposal.ballot)`,
    ...foundBy("bfs", "a slot of two ballots", "one value per slot"),
  },
];

export const multiPaxosAlone: readonly Change[] = [
  {
    name: "promised-ballot-not-journaled",
    summary: "an acceptor forgets its promise in a crash, and promises an earlier ballot",
    file: DECISIONS,
    find: `  ctx.persist({ type: "promised", ballot });\n`,
    replace: ``,
    ...foundBy("bfs", "two lead, a crash", "one value per slot"),
  },
];

export const multiPaxosWithMembers: readonly Change[] = [
  {
    name: "snapshot-without-its-members",
    summary: "a node that installs a snapshot keeps the members it knew before",
    file: DECISIONS,
    find: `  state.configurations = [...snapshot.configurations];\n`,
    replace: ``,
    ...foundBy("simulator", "members change, and snapshots are taken", "configurations"),
  },
];

const where = { by: "simulator", setting: "an auxiliary in adversity", property: "agreement" } as const;

export const cheapPaxosBugs: readonly Change[] = [
  {
    name: "leads-before-it-has-learned",
    summary: "a candidate becomes leader without learning the values that an auxiliary discarded",
    file: `${FOLDER}/phase-one.ts`,
    find: `  if (state.decided < role.target) return learnFirst(state, role, ctx);\n  lead(`,
    replace: `  if (state.decided < role.target) learnFirst(state, role, ctx);\n  lead(`,
    ...where,
  },
  {
    name: "discard-not-recorded",
    summary:
      "an auxiliary that discards decided values does not record the last discarded slot: its promises report no values",
    file: `${FOLDER}/decisions.ts`,
    find: `  state.decided = index;\n  forgetUpTo(state, index);\n`,
    replace: `  forgetUpTo(state, index);\n`,
    ...where,
  },
];

const beside: Adversity = {
  seeds: 300,
  spanMs: 6_000,
  calmMs: 0,
  mishaps: ["restart", "isolation", "isolation"],
  count: 12,
  lastingMs: [200, 1_500],
  delayMs: [1, 30],
};

export const cheapPaxosSettings: Readonly<Record<string, Setting>> = {
  "an auxiliary in adversity": {
    summary:
      "3 nodes in virtual time; one is an auxiliary, the others propose; nodes crash and restart, or are cut off for a while",
    network: "bag",
    timers: "free",
    crashes: 0,
    recoveries: 0,
    duplications: 0,
    nodes: 3,
    asks: { 0: [use(20), use(10), use(10)], 1: [use(20), use(10), use(10)] },
    adversity: beside,
  },
};
