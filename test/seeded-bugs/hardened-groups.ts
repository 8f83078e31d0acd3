/** Bugs in groups with changing members, and in the protocols that deliver their messages. */
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
    summary: "a coordinator decides a view as soon as it has accepted it itself",
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
    ...foundBy("bfs", "one member of a view crashes", "the group is the nodes that want to be in it"),
  },
  {
    name: "accepted-view-forgotten",
    summary: "a node that prepares a view ignores an accepted view",
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
    summary: "a member continues to deliver after it has reported which messages it holds",
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
    summary: "the cut contains the messages that all members hold, not those that any member holds",
    file: ROUNDS,
    find: `Math.max(0, ...counted.map(`,
    replace: `Math.min(...counted.map(`,
    ...foundBy("simulator", "groups in adversity", "invariant not-the-cut"),
  },
];

export const ordersOverViews: readonly Change[] = [
  {
    name: "view-not-finished",
    summary:
      "when the group changes, an order drops its held-back messages instead of delivering those that all remaining members have",
    file: GROUP,
    find: `      if (state.membership !== "outside") order.finish(state, ctx);\n`,
    replace: ``,
    ...foundBy("simulator", "orders in adversity", "workload: validity"),
  },
  {
    name: "sends-while-changing",
    summary: "messages sent while the group changes carry numbers of the old view",
    file: GROUP,
    find: `state.membership === "member" && order.hasRoom`,
    replace: `state.membership !== "outside" && order.hasRoom`,
    ...foundBy("simulator", "orders in adversity", "workload: C6 total order"),
  },
  {
    name: "counters-not-reset",
    summary: "counters are not reset with a new view",
    file: GROUP,
    find: `      order.renew(state);\n      ctx.emit({ type: "installed", view, members });`,
    replace: `      ctx.emit({ type: "installed", view, members });`,
    ...foundBy("simulator", "orders in adversity", "workload: C6 total order"),
  },
  {
    name: "waiting-forgotten",
    summary: "messages that waited for the next view are not sent in it",
    file: GROUP,
    find: `      ctx.emit({ type: "installed", view, members });\n      sendWaiting(state, ctx);`,
    replace: `      ctx.emit({ type: "installed", view, members });`,
    ...foundBy("simulator", "orders in adversity", "workload: validity"),
  },
];

export const ipMulticast: readonly Change[] = [
  {
    name: "repairs-never-sent",
    summary: "a member does not answer requests to retransmit a message",
    file: LOSSES,
    find: `    if (isAskedFirst) sendRepair(state, sender, number, kept, ctx);\n    restBetweenRepairs(state, ctx);`,
    replace: ``,
    ...foundBy("bfs", "two messages, a loss", "workload: agreement"),
  },
  {
    name: "delivered-twice",
    summary: "a message is delivered on arrival and again in its order: an inverted condition",
    file: IP,
    find: `if (!options.inOrder) tell(`,
    replace: `if (options.inOrder) tell(`,
    ...foundBy("bfs", "two messages, a loss", "workload: integrity"),
  },
  {
    name: "last-message-unmentioned",
    summary: "no member mentions unstable messages: the loss of the last message goes unnoticed",
    file: SESSIONS,
    find: `    else if (!state.hasSpoken && isUnstable(state)) {`,
    replace: `    else if (state.hasSpoken && isUnstable(state)) {`,
    ...foundBy("bfs", "one sends, a message is lost", "stability"),
  },
  {
    name: "stable-too-soon",
    summary: "a message counts as received by all as soon as two members have it",
    file: STREAMS,
    find: `for (const ack of stream.acks) if (ack < least) least = ack;`,
    replace: `least = stream.acks.toSorted((a, b) => b - a)[1] ?? least;`,
    ...foundBy("bfs", "one sends, a message is lost", "workload: agreement"),
  },
];
