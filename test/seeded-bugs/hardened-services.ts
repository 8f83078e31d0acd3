/** Bugs in what leads and serves by leases: the elected server of locks, and its election. */
import { type Change, foundBy } from "./seeded-bug.ts";

const LOCK_SERVICE = "src/protocols/mutex/elected-server/lock-service.ts";
const SERVER = "src/protocols/mutex/elected-server/server.ts";
const BULLY = "src/protocols/election/epoch-bully/epoch-bully.ts";
const CAMPAIGN = "src/protocols/election/epoch-bully/epoch-bully.ts";
const LEADERSHIP = "src/protocols/election/epoch-bully/epoch-bully.ts";

export const electedServerTold: readonly Change[] = [
  {
    name: "grants-without-asking",
    summary: "whoever comes to serve grants without having asked who holds what its predecessor granted",
    file: LOCK_SERVICE,
    find: `awaited: [...ctx.peers], isRecalling`,
    replace: `awaited: [], isRecalling`,
    ...foundBy("bfs", "the server crashes", "ME1 safety"),
  },
  {
    name: "any-release-counts",
    summary: "the server takes any release for that of whoever is inside now",
    file: SERVER,
    find: `if (service.holder?.token === token) service.holder = null;`,
    replace: `service.holder = null;`,
    ...foundBy("bfs", "one serves, any order", "ME1 safety"),
  },
  {
    name: "grants-not-counted",
    summary: "the server does not count what it grants: the token of each is the same",
    file: SERVER,
    find: `    service.grants += 1;\n`,
    replace: ``,
    ...foundBy("bfs", "one serves, any order", "tokens are unique"),
  },
];

export const electedServerInShortStays: readonly Change[] = [
  {
    name: "late-request-frees",
    summary: "the server takes a late copy of an older request of the holder for a new one",
    file: "src/protocols/mutex/elected-server/server.ts",
    find: `      if (isOlder(requestId, holder.requestId)) return; // It arrives late.\n`,
    replace: ``,
    ...foundBy("simulator", "copies that are several entries late", "tokens grow"),
  },
  {
    name: "late-release-frees",
    summary: "the server takes a late release of an earlier grant for that of the present one",
    file: "src/protocols/mutex/elected-server/server.ts",
    find: `if (service.holder?.token === token) service.holder = null;`,
    replace: `if (service.holder !== null && token <= service.holder.token) service.holder = null;`,
    ...foundBy("simulator", "copies that are several entries late", "tokens grow"),
  },
];

export const electedServer: readonly Change[] = [
  {
    name: "lease-from-the-answer",
    summary: "a lease is counted from when its confirmation arrives, not from when it was asked for",
    file: LOCK_SERVICE,
    find: `  state.confirmed = round;\n  if (round`,
    replace: `  state.confirmed = round;\n  ctx.setTimer(leaseTimer(round), 1_000);\n  if (round`,
    ...foundBy("simulator", "locks in adversity", "ME1 safety"),
  },
  {
    name: "no-margin-for-clocks",
    summary: "the server takes back after a lease, without what clocks may be wrong",
    file: LOCK_SERVICE,
    find: `const reclaimMs = boundMs(leaseMs, drift);`,
    replace: `const reclaimMs = leaseMs;`,
    ...foundBy("simulator", "locks in adversity", "ME1 safety"),
  },
  {
    name: "run-not-journalled",
    summary: "the number of a run is not journalled: the next one asks under the numbers of the last",
    file: LOCK_SERVICE,
    find: `          ctx.compact([{ type: "run", run: state.requestId.run }]);\n`,
    replace: ``,
    ...foundBy("simulator", "locks, a restart", "tokens are unique"),
  },
  {
    name: "asks-once",
    summary: "whoever waits does not ask again",
    file: LOCK_SERVICE,
    find: `    const { server, epoch } = state;\n    ctx.setTimer("renew", renewMs);`,
    replace: `    const { server, epoch } = state;`,
    ...foundBy("simulator", "locks, messages lost", "ME2 liveness"),
  },
  {
    name: "lease-runs-out-unseen",
    summary: "whoever is inside stays when its lease has run out",
    file: LOCK_SERVICE,
    find: `  leave(state, ctx);\n  ctx.emit({ type: "lost", token: state.token });`,
    replace: ``,
    ...foundBy("simulator", "locks in adversity", "ME1 safety"),
  },
];

export const epochBullyBounded: readonly Change[] = [
  {
    name: "promise-to-a-leader-not-journalled",
    summary: "a vote is not journalled",
    file: LEADERSHIP,
    find: `  ctx.compact([{ type: "promised", ...to }]);\n`,
    replace: ``,
    ...foundBy("bfs", "two candidates, one restarts", "one leader per epoch"),
  },
  {
    name: "epoch-not-compared",
    summary: "a vote is granted in an epoch that is promised to another already: `<` for `<=`",
    file: BULLY,
    find: `if (epoch <= state.promised.epoch || isBoundAgainst(state, from)) return;`,
    replace: `if (epoch < state.promised.epoch) return;`,
    ...foundBy("bfs", "two candidates", "one leader per epoch"),
  },
  {
    name: "stale-votes-count",
    summary: "a vote of an earlier election counts for the present one",
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
    summary: "a confirmation of an earlier round counts for the present one",
    file: BULLY,
    find: `epoch !== promised.epoch || round !== phase.round) return; // Of`,
    replace: `epoch !== promised.epoch) return; // Of`,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
  {
    name: "restart-guard-dropped",
    summary: "whoever starts again calls an election, although it may just have voted for a leader",
    file: BULLY,
    find: `      if (state.promised.to !== ctx.self) bind(state, ctx);\n      else startElection(state, ctx);`,
    replace: `      startElection(state, ctx);`,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
  {
    name: "term-without-end",
    summary: "a leader that nobody confirms goes on leading when its lease has run out",
    file: BULLY,
    find: `    if (mayLead(state)) wait(state, ctx, backOff);`,
    replace: ``,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
  {
    name: "nobody-calls",
    summary: "whoever is bound no longer does not call an election",
    file: BULLY,
    find: `        if (state.phase.is === "following") wait(state, ctx, backOff);\n`,
    replace: ``,
    ...foundBy("simulator", "a node ends", "E2 liveness"),
  },
  {
    name: "bound-for-a-lease",
    summary: "whoever confirms is bound for a lease, without what clocks may be wrong",
    file: "src/protocols/election/epoch-bully/vocabulary.ts",
    find: `boundsMs: boundMs(leaseMs, drift),`,
    replace: `boundsMs: leaseMs,`,
    ...foundBy("simulator", "elections in adversity", "one leader at a time"),
  },
];
