/** Bugs in Fast and Generalized Paxos, and the settings that find them. Plain data. */

import type { Adversity } from "./adversity.ts";
import { type Change, foundBy } from "./seeded-bug.ts";
import type { Setting } from "./settings.ts";

const FAST = "src/protocols/consensus/fast-paxos";
const GENERALIZED = "src/protocols/consensus/generalized-paxos";

export const fastPaxos: readonly Change[] = [
  {
    name: "fast-quorum-too-small",
    summary:
      "a fast quorum is one acceptor too small: two of them still intersect, but not within every classic quorum",
    file: `${FAST}/roles.ts`,
    find: `(isFast(round) ? fast : classic)`,
    replace: `(isFast(round) ? fast - 1 : classic)`,
    ...foundBy("simulator", "fast rounds in adversity", "agreement"),
  },
  {
    name: "votes-again-in-the-round",
    summary: "an acceptor votes for every command that it receives in a fast round",
    file: `${FAST}/roles.ts`,
    find: `isEarlier(last.round, round))\n  );`,
    replace: `!isEarlier(round, last.round))\n  );`,
    ...foundBy("simulator", "fast rounds in adversity", "agreement"),
  },
  {
    name: "picks-any-vote",
    summary: "the coordinator picks one of several voted values, whether or not a quorum may have chosen it",
    file: `${FAST}/vocabulary.ts`,
    find: `const v = V.filter(O4);`,
    replace: `const v = V.filter((value) => O4(value) || V.includes(value));`,
    ...foundBy("simulator", "collisions in adversity", "agreement"),
  },
  {
    name: "forgets-who-is-outside",
    summary: "when a value is picked, acceptors outside the quorum are not counted, though they may have voted for it",
    file: `${FAST}/vocabulary.ts`,
    find: `isSameValue(value, v)).length + outside >= size`,
    replace: `isSameValue(value, v)).length >= size`,
    ...foundBy("simulator", "collisions in adversity", "agreement"),
  },
  {
    name: "fast-vote-not-journaled",
    summary: "an acceptor forgets its vote in a crash",
    file: `${FAST}/roles.ts`,
    find: `  ctx.persist({ type: "voted", ...cast });\n`,
    replace: ``,
    ...foundBy("simulator", "collisions in adversity", "agreement"),
  },
];

export const generalizedPaxos: readonly Change[] = [
  {
    name: "learns-from-a-classic-quorum",
    summary: "the common part of the histories of a classic quorum is learned in fast rounds, too",
    file: `${GENERALIZED}/roles.ts`,
    find: `isFast(vote.round) ? fast : classic;`,
    replace: `isFast(vote.round) ? classic : fast;`,
    ...foundBy("simulator", "histories in adversity", "checkpoints"),
  },
  {
    name: "depends-on-nothing",
    summary: "histories treat interfering commands as commuting",
    file: `${GENERALIZED}/vocabulary.ts`,
    find: `    if (found.some((later) => interferes(command, later))) found.unshift(command);\n`,
    replace: `    if (interferes(command, command) && found.length === 0) found.unshift(command);\n`,
    ...foundBy("simulator", "histories in adversity", "agreement"),
  },
  {
    name: "picks-any-history",
    summary: "the coordinator treats one acceptor's history as safe, although a quorum may have chosen another",
    file: `${GENERALIZED}/vocabulary.ts`,
    find: `return common(inK, least, interferes);`,
    replace: `return inK[0] as History;`,
    ...foundBy("simulator", "histories in adversity", "agreement"),
  },
  {
    name: "history-not-journaled",
    summary: "an acceptor forgets in a crash which history it voted for",
    file: `${GENERALIZED}/roles.ts`,
    find: `  ctx.persist({ type: "voted", era: state.era, ...vote });\n`,
    replace: ``,
    ...foundBy("simulator", "histories in adversity", "agreement"),
  },
  {
    name: "checkpoint-drops-commands",
    summary: "checkpoints commute: an era ends with commands that some nodes have learned and others have not",
    file: `${GENERALIZED}/vocabulary.ts`,
    find: `isCheckpoint(a) || isCheckpoint(b) || declared[relation](a, b);`,
    replace: `declared[relation](a, b);`,
    ...foundBy("simulator", "histories in adversity", "checkpoints"),
  },
];

const propose = (client: number, sequence: number): object => ({
  type: "propose",
  command: { client, sequence, operation: `put k${sequence % 3} ${client}.${sequence}` },
});
const commands = (client: number, count: number): object[] =>
  Array.from({ length: count }, (_, i) => propose(client, i + 1));

const adversity: Adversity = {
  seeds: 400,
  spanMs: 2_000,
  calmMs: 0,
  mishaps: ["restart", "restart", "cut", "isolation"],
  count: 12,
  lastingMs: [50, 900],
  delayMs: [1, 40],
};

const calm = { network: "fifo", timers: "free", crashes: 0, recoveries: 0, duplications: 0 } as const;
const summary =
  "nodes in virtual time; four of them propose ten times; nodes crash and restart, or are cut off for a while";
const asks = { 0: commands(0, 10), 1: commands(1, 10), 2: commands(2, 10), 3: commands(3, 10) };

export const fastSettings: Readonly<Record<string, Setting>> = {
  "fast rounds in adversity": { ...calm, summary: `5 ${summary}`, nodes: 5, asks, adversity },
  "collisions in adversity": {
    ...calm,
    summary:
      "4 nodes in virtual time; each proposes twelve times; nodes crash and restart, or are cut off for a while, and messages are lost",
    nodes: 4,
    asks: { 0: commands(0, 12), 1: commands(1, 12), 2: commands(2, 12), 3: commands(3, 12) },
    adversity: {
      ...adversity,
      spanMs: 1_000,
      count: 30,
      mishaps: ["restart", "restart", "cut", "isolation"],
      lastingMs: [20, 200],
      downMs: [1, 30],
      lossRate: 0.2,
    },
  },
  "histories in adversity": { ...calm, summary: `5 ${summary}, to three keys`, nodes: 5, asks, adversity },
};
