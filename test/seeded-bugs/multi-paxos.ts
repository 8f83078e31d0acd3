/** Bugs in Multi-Paxos. */
import type { Change } from "./bugs.ts";

const FOLDER = "src/protocols/consensus/multi-paxos";
const DECISIONS = `${FOLDER}/decisions.ts`;
const PHASE_TWO = `${FOLDER}/phase-two.ts`;

const inAdversity = { by: "simulator", setting: "a log in adversity", property: "one value per slot" } as const;

export const multiPaxosBugs: readonly Change[] = [
  {
    name: "slot-not-journalled",
    says: "what is accepted in a slot is not journalled before it is told",
    file: DECISIONS,
    find: `  ctx.persist({ type: "accepted", slot, ...proposal, decided: state.decided });\n`,
    replace: ``,
    ...inAdversity,
  },
  {
    name: "takes-nothing-over",
    says: "a new leader proposes commands of its own where promises have told of others",
    file: PHASE_TWO,
    find: `  if (found !== undefined) return found.value;\n`,
    replace: ``,
    ...inAdversity,
  },
  {
    name: "any-ballot-decided",
    says: "a notice of the leader decides what was accepted from an earlier one, too",
    file: DECISIONS,
    find: `state.log[slot] !== undefined && isSame(state.log[slot].ballot, ballot)`,
    replace: `state.log[slot] !== undefined`,
    ...inAdversity,
  },
];
