/** Bugs in services and leaders that use leases: the elected lock server and its election. */
import { type Change, foundBy } from "./seeded-bug.ts";

const LOCK_SERVICE = "src/protocols/mutex/elected-server/lock-service.ts";
const SERVER = "src/protocols/mutex/elected-server/server.ts";
const BULLY = "src/protocols/election/epoch-bully/epoch-bully.ts";
const CAMPAIGN = "src/protocols/election/epoch-bully/epoch-bully.ts";
const LEADERSHIP = "src/protocols/election/epoch-bully/epoch-bully.ts";

export const electedServerTold: readonly Change[] = [
  {
    name: "grants-without-asking",
    summary: "a new server grants locks without asking which grants of its predecessor are still held",
    file: LOCK_SERVICE,
    find: `awaited: [...ctx.peers], isRecalling`,
    replace: `awaited: [], isRecalling`,
    ...foundBy("bfs", "the server crashes", "ME1 safety"),
  },
  {
    name: "any-release-counts",
    summary: "the server accepts any release as a release by the current holder",
    file: SERVER,
    find: `if (service.holder?.token === token) service.holder = null;`,
    replace: `service.holder = null;`,
    ...foundBy("bfs", "one serves, any order", "ME1 safety"),
  },
  {
    name: "grants-not-counted",
    summary: "the server does not count its grants: all of them have the same token",
    file: SERVER,
    find: `    service.grants += 1;\n`,
    replace: ``,
    ...foundBy("bfs", "one serves, any order", "tokens are unique"),
  },
];

export const electedServerInShortStays: readonly Change[] = [
  {
    name: "late-request-frees",
    summary: "the server treats a late copy of an earlier request by the holder as a new request",
    file: "src/protocols/mutex/elected-server/server.ts",
    find: `      if (isOlder(requestId, holder.requestId)) return; // The request is late.\n`,
    replace: ``,
    ...foundBy("simulator", "copies that are several entries late", "tokens grow"),
  },
  {
    name: "late-release-frees",
    summary: "the server treats a late release of an earlier grant as a release of the current one",
    file: "src/protocols/mutex/elected-server/server.ts",
    find: `if (service.holder?.token === token) service.holder = null;`,
    replace: `if (service.holder !== null && token <= service.holder.token) service.holder = null;`,
    ...foundBy("simulator", "copies that are several entries late", "tokens grow"),
  },
];

export const electedServer: readonly Change[] = [
  {
    name: "lease-from-the-answer",
    summary: "a lease is counted from the arrival of its confirmation, not from the request",
    file: LOCK_SERVICE,
    find: `  state.confirmed = round;\n  if (round`,
    replace: `  state.confirmed = round;\n  ctx.setTimer(leaseTimer(round), 1_000);\n  if (round`,
    ...foundBy("simulator", "locks in adversity", "ME1 safety"),
  },
  {
    name: "no-margin-for-clocks",
    summary: "the server reclaims a lock after one lease, without a margin for clock drift",
    file: LOCK_SERVICE,
    find: `const reclaimMs = boundMs(leaseMs, drift);`,
    replace: `const reclaimMs = leaseMs;`,
    ...foundBy("simulator", "locks in adversity", "ME1 safety"),
  },
  {
    name: "run-not-journaled",
    summary: "a node's incarnation is not journaled: after a restart it reuses request numbers",
    file: LOCK_SERVICE,
    find: `          ctx.compact([{ type: "run", run: state.requestId.run }]);\n`,
    replace: ``,
    ...foundBy("simulator", "locks, a restart", "tokens are unique"),
  },
  {
    name: "asks-once",
    summary: "a waiting node does not repeat its request",
    file: LOCK_SERVICE,
    find: `    const { server, epoch } = state;\n    ctx.setTimer("renew", renewMs);`,
    replace: `    const { server, epoch } = state;`,
    ...foundBy("simulator", "locks, messages lost", "ME2 liveness"),
  },
  {
    name: "lease-runs-out-unseen",
    summary: "a node stays in the critical section after its lease has expired",
    file: LOCK_SERVICE,
    find: `  leave(state, ctx);\n  ctx.emit({ type: "lost", token: state.token });`,
    replace: ``,
    ...foundBy("simulator", "locks in adversity", "ME1 safety"),
  },
];

export const epochBullyBounded: readonly Change[] = [
  {
    name: "promise-to-a-leader-not-journaled",
    summary: "a vote is not journaled",
    file: LEADERSHIP,
    find: `  ctx.compact([{ type: "promised", ...to }]);\n`,
    replace: ``,
    ...foundBy("bfs", "two candidates, one restarts", "one leader per epoch"),
  },
  {
    name: "epoch-not-compared",
    summary: "a node votes in an epoch that it has promised to another candidate: `<` for `<=`",
    file: BULLY,
    find: `if (epoch <= state.promised.epoch || isBoundAgainst(state, from)) return;`,
    replace: `if (epoch < state.promised.epoch) return;`,
    ...foundBy("bfs", "two candidates", "one leader per epoch"),
  },
  {
    name: "stale-votes-count",
    summary: "a vote of an earlier election counts in the current one",
    file: BULLY,
    find: `if (state.phase.is !== "requestingVotes" || epoch !== state.promised.epoch) return;`,
    replace: `if (state.phase.is !== "requestingVotes") return;`,
    ...foundBy("bfs", "three elections, a time-out", "one leader per epoch"),
  },
];

export const epochBully: readonly Change[] = [
  {
    name: "term-from-the-vote",
    summary: "the lease of a new leader is counted from the votes, not from the request for them",
    file: CAMPAIGN,
    find: `    ctx.cancelTimer("answer");\n    ctx.emit({ type: "elected", leader: ctx.self, epoch });`,
    replace: `    ctx.cancelTimer("answer");\n    ctx.setTimer(leaseTimer(0), leaseMs);\n    ctx.emit({ type: "elected", leader: ctx.self, epoch });`,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
  {
    name: "stale-confirms-count",
    summary: "a confirmation of an earlier round counts in the current one",
    file: BULLY,
    find: `epoch !== promised.epoch || round !== phase.round) return; // An earlier round.`,
    replace: `epoch !== promised.epoch) return; // An earlier round.`,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
  {
    name: "restart-guard-dropped",
    summary: "a node that restarts calls an election at once, although it may just have voted for a leader",
    file: BULLY,
    find: `      if (state.promised.to !== ctx.self) bind(state, ctx);\n      else startElection(state, ctx);`,
    replace: `      startElection(state, ctx);`,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
  {
    name: "term-without-end",
    summary: "a leader without confirmations continues to lead after its lease has expired",
    file: BULLY,
    find: `    if (mayLead(state)) wait(state, ctx, backOff);`,
    replace: ``,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
  {
    name: "no-election-after-promise",
    summary: "a node does not call an election after its promise to a leader has ended",
    file: BULLY,
    find: `        if (state.phase.is === "following") wait(state, ctx, backOff);\n`,
    replace: ``,
    ...foundBy("simulator", "a node stops", "E2 liveness"),
  },
  {
    name: "bound-for-a-lease",
    summary: "a node that confirms a leader is bound for one lease, without a margin for clock drift",
    file: "src/protocols/election/epoch-bully/vocabulary.ts",
    find: `boundsMs: boundMs(leaseMs, drift),`,
    replace: `boundsMs: leaseMs,`,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
];
