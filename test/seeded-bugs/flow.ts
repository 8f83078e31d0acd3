/** Bugs of back-pressure, and of sending again what links refuse. */
import type { SeededBug } from "./bugs.ts";
import type { Setting } from "./settings.ts";

const FOLDER = "src/protocols/membership/back-pressure";

const two = {
  nodes: 2,
  asks: {},
  network: "fifo",
  timers: "free",
  crashes: 0,
  recoveries: 0,
  duplications: 0,
  begin: "together",
} as const;

export const flowSettings: Readonly<Record<string, Setting>> = {
  "slow readers": { ...two, summary: "2 nodes send 3 items each to each other; six timers run out", maxTimeouts: 6 },
  "links that refuse": {
    ...two,
    summary: "2 nodes send 3 items each over links that refuse them at any time; eight timers run out",
    maxTimeouts: 8,
  },
};

const slow = { protocol: "back-pressure", by: "bfs", setting: "slow readers" } as const;
const refused = { protocol: "back-pressure, full links", by: "bfs", setting: "links that refuse" } as const;

export const flowBugs: readonly SeededBug[] = [
  {
    ...slow,
    name: "slow-not-waited-for",
    summary: "a sender waits for its own readers only",
    file: `${FOLDER}/back-pressure.ts`,
    find: `!state.isFull && nodesIn(state.slow).length === 0`,
    replace: `!state.isFull`,
    property: "readers have room",
  },
  {
    ...refused,
    name: "newest-offered",
    summary: "what is offered to a link is the newest that waits, and not the oldest",
    file: `${FOLDER}/resending.ts`,
    find: `messages.slice(0, batch)`,
    replace: `messages.slice(-1)`,
    property: "what is missing was dropped",
  },
  {
    ...refused,
    name: "refused-forgotten",
    summary: "what the link has refused of what was offered is forgotten with what it has taken",
    file: `${FOLDER}/resending.ts`,
    find: `        drop(waiting, count);\n`,
    replace: `        drop(waiting, count > 0 ? waiting.messages.length : 0);\n`,
    property: "what is missing was dropped",
  },
  {
    ...refused,
    name: "offered-once-more",
    summary: "what is refused twice is not offered a third time",
    file: `${FOLDER}/resending.ts`,
    find: `(node, state.waiting[node] as Waiting, ctx);\n        run(state, ctx);\n`,
    replace: `(node, state.waiting[node] as Waiting, ctx);\n`,
    property: "nothing is left behind",
  },
];
