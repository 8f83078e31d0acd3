/** Bugs in PBFT. */
import type { Adversity } from "./adversity.ts";
import type { Change, SeededBug } from "./seeded-bug.ts";
import type { Setting } from "./settings.ts";

const FOLDER = "src/protocols/consensus/pbft";
const NORMAL_CASE = `${FOLDER}/normal-case-operation.ts`;
const COLLECTION = `${FOLDER}/garbage-collection.ts`;
const VIEW_CHANGES = `${FOLDER}/view-changes.ts`;
const VOCABULARY = `${FOLDER}/vocabulary.ts`;
const SLOTS = `${FOLDER}/certificates.ts`;

const use = (commands: number): object => ({ type: "client", body: { type: "use", commands } });

const adversity: Adversity = {
  seeds: 60,
  spanMs: 2_500,
  calmMs: 0,
  mishaps: ["restart", "cut", "cut", "isolation", "isolation"],
  count: 16,
  lastingMs: [50, 700],
  downMs: [1, 150],
  delayMs: [1, 30],
  lossRate: 0.05,
};

const replicas = {
  network: "bag",
  timers: "free",
  crashes: 0,
  recoveries: 0,
  duplications: 0,
  begin: "together",
  nodes: 4,
  asks: { 0: [use(4), use(2)], 1: [use(4), use(2)], 2: [use(4), use(2)], 3: [use(4), use(2)] },
} as const;

export const pbftSettings: Readonly<Record<string, Setting>> = {
  "replicas in adversity": {
    ...replicas,
    summary: "4 replicas in virtual time, which propose; they crash and restart or are cut off, and messages are lost",
    adversity,
  },
  "a forger among four replicas": {
    ...replicas,
    summary: "4 replicas, a command at one; two timers expire at any time, and the next primary forges a message",
    asks: { 2: [use(1)] },
    maxTimeouts: 2,
    safetyOnly: true,
  },
};

const inAdversity = { by: "simulator", setting: "replicas in adversity" } as const;
export const pbftBugs: readonly Change[] = [
  {
    name: "certificate-forgotten",
    summary: "a view change does not report prepared requests",
    file: VIEW_CHANGES,
    find: `slot.prepared === null ? [] : [slot.prepared]`,
    replace: `[]`,
    ...inAdversity,
    property: "committed batches",
  },
  {
    name: "quorum-2f",
    summary: "2f replicas are a quorum",
    file: VOCABULARY,
    find: `byzantineQuorum(replicas.length)`,
    replace: `byzantineQuorum(replicas.length) - 1`,
    ...inAdversity,
    property: "committed batches",
  },
  {
    name: "high-watermark-unchecked",
    summary: "sequence numbers continue above the high watermark",
    file: SLOTS,
    find: `sequence > stable.sequence && sequence <= stable.sequence + window`,
    replace: `sequence > stable.sequence && window > 0`,
    ...inAdversity,
    property: "watermarks",
  },
  {
    name: "view-not-bound",
    summary: "prepares and commits of another view count if the digest is the same",
    file: SLOTS,
    find: `return value?.view === view && value.digest === digest;`,
    replace: `return value !== undefined && view >= 0 && value.digest === digest;`,
    ...inAdversity,
    property: "prepared certificates",
  },
  {
    name: "checkpoint-of-f-plus-1",
    summary: "f + 1 matching checkpoints make a state stable",
    file: COLLECTION,
    find: `if (proof.length >= quorum(state)) prove(state, proof.slice(0, quorum(state)), ctx);`,
    replace: `if (proof.length >= 2) prove(state, proof.slice(0, quorum(state)), ctx);`,
    ...inAdversity,
    property: "stable checkpoints",
  },
  {
    name: "commit-without-prepared",
    summary: "a replica commits to an assignment as soon as it has the pre-prepare",
    file: NORMAL_CASE,
    find: `  if (signers.length < quorum(state) - 1) return;\n`,
    replace: ``,
    ...inAdversity,
    property: "prepared certificates",
  },
  {
    name: "executed-twice",
    summary: "a request that is ordered twice is executed twice",
    file: NORMAL_CASE,
    find: `if (value.sequence <= (state.last[by] ?? 0)) return;\n  state.last[by]`,
    replace: `state.last[by]`,
    ...inAdversity,
    property: "executed once",
  },
  {
    name: "clients-not-in-checkpoint",
    summary: "a checkpoint does not contain the last executed request of each client",
    file: COLLECTION,
    find: `executed: clone(state.last), text: ""`,
    replace: `executed: clone({}), text: ""`,
    ...inAdversity,
    property: "executed once",
  },
  {
    name: "digest-not-bound",
    summary: "a certificate may consist of prepares for different digests",
    file: SLOTS,
    find: `return value?.view === view && value.digest === digest;`,
    replace: `return value?.view === view && digest !== "";`,
    ...inAdversity,
    property: "prepared certificates",
  },
  {
    name: "window-of-the-new-view",
    summary: "a replica that has fallen behind adopts assignments of a new view above its high watermark",
    file: VIEW_CHANGES,
    find: `if (!isInWindow(state, sequence, options)) continue;`,
    replace: `if (sequence <= state.stable.sequence) continue;`,
    ...inAdversity,
    property: "watermarks",
  },
];

const besideForger = { by: "bfs", setting: "a forger among four replicas" } as const;
export const pbftBesideForgers: readonly SeededBug[] = [
  {
    name: "new-view-not-recomputed",
    summary: "backups accept a new view without computing which assignments follow from its view changes",
    protocol: "pbft, the next primary forges a new view",
    file: VIEW_CHANGES,
    find: `    canonical(assigned) === canonical(assignmentsOf(view, viewChanges)) &&\n`,
    replace: `    assigned.length >= 0 &&\n`,
    ...besideForger,
    property: "new views",
  },
  {
    name: "certificate-of-2f",
    summary: "2f replicas make a prepared certificate in a view change",
    protocol: "pbft, the next primary forges a certificate",
    file: `${FOLDER}/certificates.ts`,
    find: `    prepares.length >= quorum(state) - 1 &&`,
    replace: `    prepares.length >= quorum(state) - 2 &&`,
    ...besideForger,
    property: "view changes",
  },
];
