/** Bugs in two-phase commit: missing journal records, decisions made alone, and wrong presumptions. */
import { type Change, foundBy, type SeededBug } from "./seeded-bug.ts";
import type { Setting } from "./settings.ts";

const FOLDER = "src/protocols/consensus/two-phase-commit";
const setting = "a transaction, a crash and a recovery";

const several = [{ type: "propose", transactions: 6 }];

export const twoPhaseCommitSettings: Readonly<Record<string, Setting>> = {
  "late copies of transactions": {
    summary:
      "3 nodes in virtual time; each coordinates several transactions; nodes restart, and messages are lost, reordered and duplicated late",
    network: "bag",
    timers: "free",
    begin: "together",
    crashes: 0,
    recoveries: 0,
    duplications: 1,
    nodes: 3,
    asks: { 0: several, 1: several, 2: [...several, { type: "refuse" }, { type: "agree" }] },
    adversity: {
      seeds: 100,
      spanMs: 4_000,
      calmMs: 20_000,
      mishaps: ["restart", "cut", "isolation"],
      count: 8,
      lastingMs: [50, 700],
      delayMs: { logNormal: { medianMs: 15, sigma: 2 } },
      lossRate: 0.05,
    },
  },
};

const inFile = (file: string, changes: readonly Omit<Change, "file">[]): SeededBug[] =>
  changes.map((change) => ({ ...change, protocol: "two-phase-commit", file: `${FOLDER}/${file}` }));

export const twoPhaseCommitBugs: readonly SeededBug[] = [
  ...inFile("two-phase-commit.ts", [
    {
      name: "yes-not-journaled",
      summary: "a participant votes yes before it has journaled the vote",
      find: `ctx.persist({ type: "prepared", transaction });`,
      replace: ``,
      by: "bfs",
      setting,
      property: "memory",
    },
    {
      name: "earlier-transaction-undecided",
      summary:
        "a participant in doubt that receives a vote request for the next transaction never decides the earlier one",
      find: `        abortBefore(state, transaction, ctx);\n        const part`,
      replace: `        const part`,
      ...foundBy("simulator", "late copies of transactions", "decision"),
    },
    {
      name: "prepared-not-replayed",
      summary: "a participant that restarts does not restore its vote from the journal",
      find: `      prepared(state, { transaction }) {\n        state.parts[transaction.coordinator] =`,
      replace: `      prepared(state, { transaction }) {\n        if (transaction.number < 0) state.parts[transaction.coordinator] =`,
      by: "bfs",
      setting,
      property: "memory",
    },
    {
      name: "acknowledgement-of-another-transaction",
      summary: "the coordinator counts a late acknowledgment of an earlier transaction",
      find: `if (coordinator.phase !== "committed" || !isSame(coordinator.transaction, transaction)) return; // A duplicate.`,
      replace: `if (coordinator.phase !== "committed") return;`,
      ...foundBy("simulator", "late copies of transactions", "atomicity"),
    },
    {
      name: "vote-request-of-an-older-transaction",
      summary: "a participant votes again on a late copy of an earlier vote request",
      find: `if (part !== undefined && !isBefore(part.transaction, transaction)) {`,
      replace: `if (part !== undefined && isSame(part.transaction, transaction)) {`,
      ...foundBy("simulator", "late copies of transactions", "memory"),
    },
    {
      name: "first-yes-commits",
      summary: "the coordinator commits on the first yes",
      find: `if (coordinator.missing.length === 0) commit(state, transaction, ctx);`,
      replace: `commit(state, transaction, ctx);`,
      by: "random",
      setting,
      property: "atomicity",
    },
  ]),
  ...inFile("two-phase-commit.ts", [
    {
      name: "forgets-its-commit",
      summary: "the coordinator does not journal its commit: after a crash it presumes an abort",
      find: `ctx.persist({ type: "committed", transaction, participants: [...ctx.peers] });`,
      replace: ``,
      ...foundBy("bfs", "a transaction, a crash, a recovery and a loss", "atomicity"),
    },
    {
      name: "numbers-used-again",
      summary: "after a crash the coordinator counts its transactions from 1 again",
      find: `state.number = upTo;`,
      replace: `state.number = 0;`,
      ...foundBy("bfs", "two transactions, a crash and a recovery", "atomicity"),
    },
  ]),
  ...inFile("two-phase-commit.ts", [
    {
      name: "aborts-alone",
      summary: "a participant in doubt aborts when its timer expires",
      find: `const open = inDoubt(state);`,
      replace: `for (const { transaction } of inDoubt(state)) finish(state, transaction, "abort", ctx);\n    const open = inDoubt(state);`,
      by: "bfs",
      setting,
      property: "atomicity",
    },
    {
      name: "end-not-journaled",
      summary: "a participant does not journal the decision: after a crash it is in doubt again, and decides again",
      find: `else ctx.persist({ type: "finished", transaction, decision });`,
      replace: ``,
      by: "bfs",
      setting,
      property: "integrity",
    },
    {
      name: "presumed-commit",
      summary: "a coordinator that does not remember a transaction reports that it was committed",
      find: `return "abort"; // Presumed.`,
      replace: `return "commit"; // Presumed.`,
      by: "random",
      setting,
      property: "atomicity",
    },
  ]),
];
