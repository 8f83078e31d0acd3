/** Bugs of names: in how settings are agreed on, in how names are put away, and in how a member puts a lock under one. */
import type { Change, SeededBug } from "./bugs.ts";
import type { Setting } from "./settings.ts";

const FOLDER = "src/protocols/membership/names";

const alone = { nodes: 2, asks: {}, network: "fifo", timers: "free", duplications: 0, begin: "together" } as const;

export const namesSettings: Readonly<Record<string, Setting>> = {
  "a name, used once each": {
    ...alone,
    summary: "2 nodes use a name once each; six timers run out",
    crashes: 0,
    recoveries: 0,
    maxTimeouts: 6,
    safetyOnly: true,
  },
  "a name in two ways, a crash and a recovery": {
    ...alone,
    summary: "2 nodes use a name once each, in one of two ways; one crashes and comes back; four timers run out",
    crashes: 1,
    recoveries: 1,
    maxTimeouts: 4,
    safetyOnly: true,
  },
  "a member's lock in two ways, a crash and a recovery": {
    ...alone,
    summary:
      "2 members, whose programs enter once each, in one of two ways; one crashes, which is noticed, and comes back",
    crashes: 1,
    recoveries: 1,
    safetyOnly: true,
  },
  "a member's lock that is put away": {
    ...alone,
    summary: "2 members, whose programs enter twice each; eight timers run out",
    crashes: 0,
    recoveries: 0,
    maxTimeouts: 8,
    safetyOnly: true,
  },
};

const once = { by: "bfs", setting: "a name, used once each", property: "a name in use is not put away" } as const;
const twoWays = { by: "bfs", setting: "a name in two ways, a crash and a recovery" } as const;

export const namesBugs: readonly Change[] = [
  {
    ...once,
    name: "agrees-in-use",
    summary: "a node that is asked does not look whether its program uses the name",
    file: `${FOLDER}/putting-away.ts`,
    find: `state.suspected.length > 0 || !mayEnd(state, name)) return;`,
    replace: `state.suspected.length > 0) return;`,
  },
  {
    ...once,
    name: "not-begun-anew",
    summary: "what has been used again since a node agreed is put away all the same",
    file: `${FOLDER}/putting-away.ts`,
    find: `    if (known.isUsed) renew(state, name, known, ctx);\n    else putAway`,
    replace: `    putAway`,
  },
  {
    ...once,
    name: "one-asks-nobody",
    summary: "the node that leads puts away what is idle there, and does not wait for the others",
    file: `${FOLDER}/putting-away.ts`,
    find: `if (ctx.peers.length === 0) conclude`,
    replace: `conclude`,
  },
  {
    ...twoWays,
    name: "gives-way-to-one",
    summary: "a refusal ends what a majority is known to run",
    file: `${FOLDER}/settings.ts`,
    find: `!known.isEstablished || isOutvoted(known, ctx);`,
    replace: `true;`,
    property: "majorities keep their settings",
  },
  {
    ...twoWays,
    name: "held-words-kept",
    summary: "what a node said before it gave way, and still waits, is taken once it runs the name in another way",
    file: `${FOLDER}/names.ts`,
    find: `        ctx.emit({ type: "parted", name, node: from }); // If it runs it, it has just said how, and nothing waits.\n`,
    replace: ``,
    property: "words are meant",
  },
];

const MEMBER = "src/protocols/member/whole";

const lock = {
  protocol: "whole member, a lock",
  by: "bfs",
  setting: "a member's lock in two ways, a crash and a recovery",
} as const;
const ring = { protocol: "whole member, a ring", by: "bfs", setting: "a member's lock that is put away" } as const;

export const wholeMemberBugs: readonly SeededBug[] = [
  {
    ...lock,
    name: "strangers-heard",
    summary: "what a node says that runs the name in another way is given to the lock",
    file: `${MEMBER}/under-name.ts`,
    find: `        if (said === undefined || how === "drop") return;
        if (how === "take")`,
    replace: `        if (said === undefined) return;
        if (how !== "hold")`,
    property: "messages are meant",
  },
  {
    ...ring,
    name: "floor-forgotten",
    summary: "what begins after a lock was put away has not promised what that had",
    file: `${MEMBER}/under-name.ts`,
    find: `    if (state.floor === 0 || floor === null) return [];\n`,
    replace: `    if (floor !== null) return [];\n`,
    property: "mutex: one token an epoch",
  },
  {
    ...ring,
    name: "put-away-in-use",
    summary: "a member that is asked whether a lock may go does not look whether its program has it",
    file: `${FOLDER}/putting-away.ts`,
    find: `state.suspected.length > 0 || !mayEnd(state, name)) return;`,
    replace: `state.suspected.length > 0) return;`,
    property: "a name in use is not put away",
  },
];
