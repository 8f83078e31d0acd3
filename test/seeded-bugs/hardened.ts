/** Bugs in hardened protocols: how mutual exclusion handles crashes, recoveries and duplicated messages. */

import { agreementOnViews, ipMulticast, ordersOverViews, viewSynchrony } from "./hardened-groups.ts";
import { heartbeat, superPeerDht, superPeerTokens } from "./hardened-overlays.ts";
import {
  electedServer,
  electedServerInShortStays,
  electedServerTold,
  epochBully,
  epochBullyBounded,
} from "./hardened-services.ts";
import { type Change, foundBy, type SeededBug, type Subject } from "./seeded-bug.ts";

const RA = "src/protocols/mutex/ricart-agrawala/recovering.ts";
const MS = "src/protocols/mutex/maekawa-sanders/recovering.ts";
const VOTES = "src/protocols/mutex/maekawa-sanders/maekawa-sanders.ts";
const RING = "src/protocols/mutex/epoch-token-ring/epoch-token-ring.ts";

const inFile =
  (protocol: Subject, file: string) =>
  (change: Omit<Change, "file">): SeededBug => ({ ...change, protocol, file });
const of =
  (protocol: Subject) =>
  (change: Change): SeededBug => ({ ...change, protocol });

const ricartAgrawala: readonly Omit<Change, "file">[] = [
  {
    name: "starts-unwelcomed",
    summary: "a node that starts sends hello and does not wait for a welcome",
    find: `state.unmet = [...ctx.peers];`,
    replace: `state.unmet = [];`,
    ...foundBy("bfs", "a detected crash and a recovery", "ME2 liveness"),
  },
  {
    name: "welcome-without-request",
    summary: "the request that comes with a welcome is ignored",
    find: `if (state.unmet.includes(from) && wanted !== null) consider(from, wanted, state, asBook(ctx));\n`,
    replace: ``,
    ...foundBy("bfs", "a detected crash and a recovery", "ME2 liveness"),
  },
  {
    name: "waits-for-the-suspected",
    summary: "a node does not check again whether a suspicion leaves any node to wait for",
    find: `command.suspect(state, suspicion, asBook(ctx));\n        enterIfWished(state, ctx);`,
    replace: `state.suspected.push(suspicion.node);`,
    ...foundBy("random", "a detected crash and a recovery", "ME2 liveness"),
  },
  {
    name: "continues-uninformed",
    summary: "a node without knowledge continues as soon as it suspects all others",
    find: `unmet.length === 0 || (isInformed && unmet.every((node) => suspected.includes(node)));`,
    replace: `unmet.every((node) => suspected.includes(node)) || isInformed;`,
    ...foundBy("bfs", "both crash, one restarts", "tokens grow"),
  },
  {
    name: "answers-to-an-earlier-life",
    summary: "a node accepts a welcome to any of its hellos, and so a reply to a request of an earlier incarnation",
    find: `        if (to !== state.hello) return; // The welcome was meant for an earlier incarnation.\n`,
    replace: ``,
    ...foundBy("bfs", "a detected crash just after the start, and a recovery", "ME3 ordering"),
  },
];

const maekawaSanders: readonly Omit<Change, "file">[] = [
  {
    name: "one-more-is-enough",
    summary: "a voter that loses its candidate adds one to its own count without asking the others",
    find: `    askForTokens(state, ctx);\n  }`,
    replace: `    state.token += 1;\n    rules.voteForNext(state, asPublished(ctx));\n  }`,
    ...foundBy("bfs", "a detected crash, three requests", "tokens grow"),
  },
  {
    name: "not-one-more",
    summary: "a voter that loses its candidate asks for the highest token but does not add one",
    find: `    state.token += 1; // A node that crashed inside may have used this token.\n`,
    replace: ``,
    ...foundBy("bfs", "a detected crash, three requests", "tokens grow"),
  },
  {
    name: "vote-lost-with-its-candidate",
    summary: "a suspicion does not withdraw the vote",
    find: `include(state.suspected, node);\n        letGo(node, state, ctx);`,
    replace: `include(state.suspected, node);`,
    ...foundBy("swarm", "a detected crash, three requests", "ME2 liveness"),
  },
];

const votesOfMaekawaSanders: readonly Omit<Change, "file">[] = [
  {
    name: "votes-while-joining",
    summary: "a node that restarted votes before it knows its earlier vote",
    find: `if (ballot.candidate === null && mayVote(state)) return vote`,
    replace: `if (ballot.candidate === null) return vote`,
    ...foundBy("bfs", "a detected crash and a recovery", "tokens grow"),
  },
];

const epochTokenRing: readonly Omit<Change, "file">[] = [
  {
    name: "copy-taken-for-the-token",
    summary: "a node accepts a token that it has already had",
    find: `        if (epoch === state.epoch && hops <= state.hops) return; // A copy of a token that this node has already had.\n`,
    replace: ``,
    ...foundBy("bfs", "a ring, a copy", "one token an epoch"),
  },
  {
    name: "passed-on-and-kept",
    summary: "a node that passes the token on keeps it",
    find: `Object.assign(state, { token: null, heard: [], rounds: 0 });\n    beginLease`,
    replace: `Object.assign(state, { heard: [], rounds: 0 });\n    beginLease`,
    ...foundBy("random", "a ring, a copy", "one token an epoch"),
  },
  {
    name: "vote-not-journaled",
    summary: "a node that votes for a token does not journal the vote",
    find: `  ctx.compact([{ type: "promised", epoch, to }]);\n`,
    replace: ``,
    ...foundBy("bfs", "a ring, a crash and a recovery", "one token an epoch"),
  },
  {
    name: "one-vote-for-all",
    summary: "a node that guards a token votes for another token of the same epoch",
    find: `if (isTaken || epoch <= state.promised)`,
    replace: `if (epoch < state.promised)`,
    ...foundBy("bfs", "a ring, a crash and a recovery", "one token an epoch"),
  },
];

const epochTokenRingInTime: readonly Omit<Change, "file">[] = [
  {
    name: "token-guard-dropped",
    summary:
      "a node that restarts votes for a new token at once, although it may have seen the current token just before it crashed",
    find: `guard(state, ctx, Math.max(guardMs, USUAL_GUARD_MS)); // It may have seen`,
    replace: `ctx.setTimer("watch", [1, renewMs]); // It may have seen`,
    ...foundBy("simulator", "token ring in adversity", "ME1 safety"),
  },
];

export const hardened: readonly SeededBug[] = [
  ...ricartAgrawala.map(inFile("ricart-agrawala, rejoining", RA)),
  ...maekawaSanders.map(inFile("maekawa-sanders, rejoining", MS)),
  ...votesOfMaekawaSanders.map(inFile("maekawa-sanders, rejoining", VOTES)),
  ...epochTokenRing.map(inFile("epoch-token-ring", RING)),
  ...epochTokenRingInTime.map(inFile("epoch-token-ring, long stays", RING)),
  ...electedServerTold.map(of("elected-server, server given")),
  ...electedServer.map(of("elected-server")),
  ...electedServerInShortStays.map(of("elected-server, short stays")),
  ...epochBullyBounded.map(of("epoch-bully, bounded")),
  ...epochBully.map(of("epoch-bully")),
  ...agreementOnViews.map(of("view-synchrony, the agreement on views")),
  ...viewSynchrony.map(of("view-synchrony")),
  ...ordersOverViews.map(of("isis over views")),
  ...ipMulticast.map(of("ip-multicast")),
  ...heartbeat.map(of("heartbeat")),
  ...superPeerDht.map(of("super-peer-dht")),
  ...superPeerTokens.map(of("super-peer-tokens")),
];
