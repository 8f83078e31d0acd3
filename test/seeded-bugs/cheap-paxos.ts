/** Bugs in Cheap Paxos, in what its auxiliaries hold and forget; and where they are looked for: all of it plain data. */
import type { Adversity } from "./adversity.ts";
import type { Change } from "./seeded-bug.ts";
import type { Setting } from "./settings.ts";

const MULTI_PAXOS = "src/protocols/consensus/multi-paxos";
const where = { by: "simulator", setting: "an auxiliary in adversity", property: "agreement" } as const;

export const cheapPaxosBugs: readonly Change[] = [
  {
    name: "leads-before-it-has-learnt",
    summary: "a candidate leads without having learnt what an auxiliary was told to forget",
    file: `${MULTI_PAXOS}/phase-one.ts`,
    find: `  if (state.decided < role.target) return learnFirst(state, role, ctx);\n  lead(`,
    replace: `  if (state.decided < role.target) learnFirst(state, role, ctx);\n  lead(`,
    ...where,
  },
  {
    name: "forgets-that-it-forgot",
    summary:
      "an auxiliary that forgets what is decided does not note up to where: it promises as if there had been nothing",
    file: `${MULTI_PAXOS}/decisions.ts`,
    find: `  state.decided = index;\n  forgetUpTo(state, index);\n`,
    replace: `  forgetUpTo(state, index);\n`,
    ...where,
  },
];

const use = (commands: number): object => ({ type: "client", body: { type: "use", commands } });
const adversity: Adversity = {
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
      "3 nodes in virtual time, of which one is an auxiliary and the others propose; nodes crash and are back, or are cut off for a while",
    network: "bag",
    timers: "free",
    crashes: 0,
    recoveries: 0,
    duplications: 0,
    nodes: 3,
    asks: { 0: [use(20), use(10), use(10)], 1: [use(20), use(10), use(10)] },
    adversity,
  },
};
