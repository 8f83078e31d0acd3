/** Bugs in Multi-Paxos. */
import { type Change, foundBy } from "./seeded-bug.ts";

const FOLDER = "src/protocols/consensus/multi-paxos";
const DECISIONS = `${FOLDER}/decisions.ts`;
const PHASE_TWO = `${FOLDER}/leadership.ts`;

const whereLeadersChange = {
  ...foundBy("simulator", "a log whose leaders change often", "agreement"),
} as const;
const inAdversity = { by: "simulator", setting: "a log in adversity", property: "one value per slot" } as const;

export const multiPaxosBugs: readonly Change[] = [
  {
    name: "slot-not-journalled",
    summary: "what is accepted in a slot is not journalled before it is told",
    file: DECISIONS,
    find: `  ctx.persist({ type: "accepted", slot, ...proposal, decided: state.decided });\n`,
    replace: ``,
    ...inAdversity,
  },
  {
    name: "takes-nothing-over",
    summary: "a new leader proposes commands of its own where promises have told of others",
    file: PHASE_TWO,
    find: `  if (found !== undefined) return found.value;\n`,
    replace: ``,
    ...inAdversity,
  },
  {
    name: "any-ballot-decided",
    summary: "a notice of the leader decides what was accepted from an earlier one, too",
    file: DECISIONS,
    find: `state.log[slot] !== undefined && isSame(state.log[slot].ballot, ballot)`,
    replace: `state.log[slot] !== undefined`,
    ...inAdversity,
  },
  {
    name: "rewritten-without-the-tail",
    summary: "with a snapshot the journal is written anew without what has been accepted beyond it",
    file: DECISIONS,
    find: `{ type: "promised", ballot: promised }, ...accepted]`,
    replace: `{ type: "promised", ballot: promised }, ...accepted.slice(accepted.length)]`,
    ...whereLeadersChange,
  },
];

export const multiPaxosWithTwoBallots: readonly Change[] = [
  {
    name: "any-found-value",
    summary: "of what promises tell of a slot the first is taken, not that of the highest ballot",
    file: `${FOLDER}/phase-one.ts`,
    find: `known === undefined || isBelow(known.ballot, proposal.ballot)`,
    replace: `known === undefined || isBelow(proposal.ballot, proposal.ballot)`,
    ...foundBy("bfs", "a slot of two ballots", "one value per slot"),
  },
];

export const multiPaxosAlone: readonly Change[] = [
  {
    name: "promised-ballot-not-journalled",
    summary: "an acceptor forgets in a crash what it has promised, and promises an earlier ballot",
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
