/** Bugs in groups whose members come and go, and in what carries their messages. */
import { type Change, foundBy } from "./seeded-bug.ts";

const VIEWS = "src/protocols/membership/views/agreement.ts";
const ROUNDS = "src/protocols/membership/views/rounds.ts";
const IP = "src/protocols/multicast/ip-multicast/ip-multicast.ts";
const LOSSES = "src/protocols/multicast/ip-multicast/repairs.ts";
const STREAMS = "src/protocols/multicast/ip-multicast/sessions.ts";
const SESSIONS = "src/protocols/multicast/ip-multicast/sessions.ts";
const GROUP = "src/protocols/multicast/parts/group.ts";

export const agreementOnViews: readonly Change[] = [
  {
    name: "decides-alone",
    summary: "a coordinator decides on a view as soon as it has accepted it itself",
    file: ROUNDS,
    find: `    if (phase.acceptors.length < quorum(ctx)) return;\n`,
    replace: ``,
    ...foundBy("bfs", "two suspect each other", "agreement on views"),
  },
  {
    name: "crash-unnoticed",
    summary: "a suspicion does not lead to another view",
    file: VIEWS,
    find: `        doWithout(state, node, ctx);\n        hasten(state, ctx);`,
    replace: `        doWithout(state, node, ctx);`,
    ...foundBy("bfs", "one of a view crashes", "the group is whoever would be in it"),
  },
  {
    name: "accepted-view-forgotten",
    summary: "whoever prepares a view passes over one that has been accepted",
    file: ROUNDS,
    find: `if (highest !== undefined) return propose(state, round, highest.view, ctx);`,
    replace: ``,
    ...foundBy("bfs", "two suspect each other", "agreement on views"),
  },
  {
    name: "accepts-stale-views",
    summary: "an acceptor takes part in rounds below its promise",
    file: VIEWS,
    find: `if (round >= state.promised) return false;`,
    replace: `if (round >= 0) return false;`,
    ...foundBy("bfs", "two suspect each other", "agreement on views"),
  },
];

export const viewSynchrony: readonly Change[] = [
  {
    name: "delivers-while-changing",
    summary: "a member goes on delivering when it has said what it holds",
    file: IP,
    find: `else if (state.phase === "open") deliverUpTo`,
    replace: `else deliverUpTo`,
    ...foundBy("simulator", "groups in adversity", "invariant not-the-cut"),
  },
  {
    name: "cut-not-filled",
    summary: "a view is proposed before all its members hold the cut",
    file: ROUNDS,
    find: `if (lacking.length === 0) return propose`,
    replace: `if (lacking.length >= 0) return propose`,
    ...foundBy("simulator", "groups in adversity", "invariant not-the-cut"),
  },
  {
    name: "cut-of-the-least",
    summary: "the cut takes what all of the members hold, not what any does",
    file: ROUNDS,
    find: `Math.max(0, ...counted.map(`,
    replace: `Math.min(...counted.map(`,
    ...foundBy("simulator", "groups in adversity", "invariant not-the-cut"),
  },
];

export const ordersOverViews: readonly Change[] = [
  {
    name: "view-not-finished",
    summary: "an order forgets what it holds back when the group changes, without delivering what all who go on have",
    file: GROUP,
    find: `      if (state.membership !== "outside") order.finish(state, ctx);\n`,
    replace: ``,
    ...foundBy("simulator", "orders in adversity", "workload: validity"),
  },
  {
    name: "sends-while-changing",
    summary: "what is sent while the group changes goes out under the numbers of the old view",
    file: GROUP,
    find: `state.membership === "member" && order.hasRoom`,
    replace: `state.membership !== "outside" && order.hasRoom`,
    ...foundBy("simulator", "orders in adversity", "workload: C6 total order"),
  },
  {
    name: "numbers-go-on",
    summary: "counts are not begun anew with a view",
    file: GROUP,
    find: `      order.renew(state);\n      ctx.emit({ type: "installed", view, members });`,
    replace: `      ctx.emit({ type: "installed", view, members });`,
    ...foundBy("simulator", "orders in adversity", "workload: C6 total order"),
  },
  {
    name: "waiting-forgotten",
    summary: "what has waited for the next view is not sent in it",
    file: GROUP,
    find: `      ctx.emit({ type: "installed", view, members });\n      sendWaiting(state, ctx);`,
    replace: `      ctx.emit({ type: "installed", view, members });`,
    ...foundBy("simulator", "orders in adversity", "workload: validity"),
  },
];

export const ipMulticast: readonly Change[] = [
  {
    name: "repairs-never-sent",
    summary: "whoever is asked for a message does not send it",
    file: LOSSES,
    find: `    if (isAskedFirst) sendRepair(state, sender, number, kept, ctx);\n    restBetweenRepairs(state, ctx);`,
    replace: ``,
    ...foundBy("bfs", "two messages, a loss", "workload: agreement"),
  },
  {
    name: "delivered-twice",
    summary: "a message is delivered as it comes, and again in its order: a condition the wrong way round",
    file: IP,
    find: `if (!options.inOrder) tell(`,
    replace: `if (options.inOrder) tell(`,
    ...foundBy("bfs", "two messages, a loss", "workload: integrity"),
  },
  {
    name: "last-message-unmentioned",
    summary: "nobody speaks of what is not stable: the loss of the last message goes unnoticed",
    file: SESSIONS,
    find: `    else if (!state.hasSpoken && isUnstable(state)) {`,
    replace: `    else if (state.hasSpoken && isUnstable(state)) {`,
    ...foundBy("bfs", "one sends, a message is lost", "stability"),
  },
  {
    name: "stable-too-soon",
    summary: "a message counts as received by all as soon as two have it",
    file: STREAMS,
    find: `for (const ack of stream.acks) if (ack < least) least = ack;`,
    replace: `least = stream.acks.toSorted((a, b) => b - a)[1] ?? least;`,
    ...foundBy("bfs", "one sends, a message is lost", "workload: agreement"),
  },
];
