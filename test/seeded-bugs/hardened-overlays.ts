/** Bugs in the failure detector and in the overlays that elect super-peers. */
import type { Change } from "./seeded-bug.ts";

const HEARTBEAT = "src/protocols/membership/heartbeat.ts";
const DHT = "src/protocols/overlay/super-peer-dht/super-peer-dht.ts";
const UPKEEP = "src/protocols/overlay/super-peer-dht/lookups.ts";
const TOKENS = "src/protocols/overlay/super-peer-tokens/super-peer-tokens.ts";

type Where = Pick<Change, "by" | "setting">;
const detected: Where = { by: "simulator", setting: "heartbeats in adversity" };
const ended: Where = { by: "simulator", setting: "beats, one ends" };
const joined: Where = { by: "simulator", setting: "a ring, two restart" };
const spread: Where = { by: "simulator", setting: "tokens, one restarts" };

export const heartbeat: readonly Change[] = [
  {
    ...ended,
    name: "misses-not-counted",
    summary: "missed heartbeats are not counted",
    file: HEARTBEAT,
    find: `          peer.missed += 1;\n`,
    replace: ``,
    property: "strong completeness",
  },
  {
    ...detected,
    name: "never-restored",
    summary: "a suspicion is not withdrawn when the node sends again",
    file: HEARTBEAT,
    find: `          peer.status = "trusted";\n          ctx.emit({ type: "restored", node: from });\n        }\n        peer.missed`,
    replace: `        }\n        peer.missed`,
    property: "eventual strong accuracy",
  },
  {
    ...detected,
    name: "misses-add-up",
    summary: "a heartbeat does not reset the count of misses",
    file: HEARTBEAT,
    find: `        peer.missed = 0;\n        peer.lastBeat`,
    replace: `        peer.lastBeat`,
    property: "eventual strong accuracy",
  },
  {
    ...ended,
    name: "beats-once",
    summary: "the heartbeat timer is not restarted",
    file: HEARTBEAT,
    find: `    ctx.setTimer("beat", options.intervalMs);\n`,
    replace: `    if (state.beat === 1) ctx.setTimer("beat", options.intervalMs);\n`,
    property: "strong completeness",
  },
];

export const superPeerDht: readonly Change[] = [
  {
    ...joined,
    name: "crashed-successor-kept",
    summary: "a successor that does not answer stays the successor",
    file: UPKEEP,
    find: `    if (state.unanswered >= MAX_MISSES) forget(state, state.successors[0] as NodeId, ctx.self);\n`,
    replace: ``,
    property: "ring",
  },
  {
    ...joined,
    name: "crashed-predecessor-kept",
    summary: "a predecessor that is silent stays the predecessor",
    file: UPKEEP,
    find: `    state.predecessor = null;\n    state.silence = 0;\n  }`,
    replace: `    state.silence = 0;\n  }`,
    property: "ring",
  },
  {
    ...joined,
    name: "nearer-successor-passed-over",
    summary: "a node does not look for nodes between itself and its successor",
    file: UPKEEP,
    find: `      ctx.send(predecessor, { type: "stabilize" });`,
    replace: `      return;`,
    property: "ring",
  },
  {
    ...joined,
    name: "does-not-yield",
    summary: "a contact founds a ring of its own although an earlier contact has asked it to join",
    file: DHT,
    find: `if (contacts.includes(ctx.self) && !state.yields) return enter`,
    replace: `if (contacts.includes(ctx.self)) return enter`,
    property: "ring",
  },
  {
    ...joined,
    name: "super-peer-asked-once",
    summary: "the node that serves a region is not looked up again",
    file: DHT,
    find: `    searches.take(state, { purpose: "superPeer",`,
    replace: `    if (state.superPeer === null) searches.take(state, { purpose: "superPeer",`,
    property: "agreement",
  },
];

export const superPeerTokens: readonly Change[] = [
  {
    ...spread,
    name: "begins-with-its-token-again",
    summary: "a node that restarts has the token that it began with",
    file: TOKENS,
    find: `  state.token = null;\n}\n\nfunction roleOf`,
    replace: `}\n\nfunction roleOf`,
    property: "one holder",
  },
  {
    ...spread,
    name: "successor-waits-forever",
    summary: "a successor counts the silent rounds but does not regenerate the lost token",
    file: TOKENS,
    find: `if (silence <= lostRounds) return { ...legacy, silence };`,
    replace: `if (silence > 0) return { ...legacy, silence };`,
    property: "none lost",
  },
  {
    ...spread,
    name: "holds-while-moving",
    summary: "a node that sent its token does not record that the token is in transit",
    file: TOKENS,
    find: `    state.moving = moveRounds;\n`,
    replace: ``,
    property: "one holder",
  },
  {
    ...spread,
    name: "sightings-never-age",
    summary: "reports about token holders never become stale",
    file: TOKENS,
    find: `    age(state, 2 * settleRounds);\n`,
    replace: ``,
    property: "served",
  },
  {
    ...spread,
    name: "rounds-not-counted",
    summary: "the rounds that a token stays at a node are not counted",
    file: TOKENS,
    find: `    if (state.moving === 0) state.held = Math.min(state.held + 1, settleRounds);\n`,
    replace: ``,
    property: "settled",
  },
];
