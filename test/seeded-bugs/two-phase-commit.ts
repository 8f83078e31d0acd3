/** Bugs of two-phase commit: what is not journalled, decided alone, or presumed the wrong way. */
import type { Change, SeededBug } from "./bugs.ts";

const FOLDER = "src/protocols/consensus/two-phase-commit";
const setting = "a transaction, a crash and a recovery";

const inFile = (file: string, changes: readonly Omit<Change, "file">[]): SeededBug[] =>
  changes.map((change) => ({ ...change, protocol: "two-phase-commit", file: `${FOLDER}/${file}` }));

export const twoPhaseCommitBugs: readonly SeededBug[] = [
  ...inFile("two-phase-commit.ts", [
    {
      name: "yes-not-journalled",
      summary: "a participant votes yes before it has journalled that",
      find: `ctx.persist({ type: "prepared", transaction });`,
      replace: ``,
      by: "bfs",
      setting,
      property: "atomicity",
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
  ...inFile("coordinator.ts", [
    {
      name: "forgets-its-commit",
      summary: "the coordinator does not journal its commit: after a crash it presumes an abort",
      find: `ctx.persist({ type: "committed", transaction, participants: [...ctx.peers] });`,
      replace: ``,
      by: "bfs",
      setting: "a transaction, a crash, a recovery and a loss",
      property: "atomicity",
    },
    {
      name: "numbers-used-again",
      summary: "after a crash the coordinator counts its transactions from 1 again",
      find: `state.number = upTo;`,
      replace: `state.number = 0;`,
      by: "bfs",
      setting: "two transactions, a crash and a recovery",
      property: "atomicity",
    },
  ]),
  ...inFile("participant.ts", [
    {
      name: "aborts-alone",
      summary: "a participant in doubt aborts when its patience is over",
      find: `const open = inDoubt(state);`,
      replace: `for (const { transaction } of inDoubt(state)) finish(state, transaction, "abort", ctx);\n    const open = inDoubt(state);`,
      by: "bfs",
      setting,
      property: "atomicity",
    },
    {
      name: "end-not-journalled",
      summary:
        "a participant does not journal what was decided: after a crash it is in doubt again, and decides once more",
      find: `else ctx.persist({ type: "finished", transaction, decision });`,
      replace: ``,
      by: "bfs",
      setting,
      property: "integrity",
    },
    {
      name: "presumed-commit",
      summary: "a coordinator that does not remember a transaction says that it was committed",
      find: `return "abort"; // Presumed.`,
      replace: `return "commit"; // Presumed.`,
      by: "random",
      setting,
      property: "atomicity",
    },
  ]),
];
