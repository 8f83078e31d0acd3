/** Bugs in channels in views on the log, in the multicast through it, and in the state transfer. */
import type { ServiceBug } from "./service.ts";

export interface ChannelBug extends Omit<ServiceBug, "by"> {
  /** The random run that finds it. */
  readonly run: number;
}

const LOG_VIEWS = "src/protocols/multicast/parts/log-views";

export const channelBugs: readonly ChannelBug[] = [
  {
    name: "least-of-survivors",
    run: 3,
    summary: "the cut is the fewest messages that a survivor received from each sender, not the most",
    file: `${LOG_VIEWS}/vocabulary.ts`,
    find: "Math.max(...survivors.map(",
    replace: "Math.min(...survivors.map(",
  },
  {
    name: "view-of-an-earlier-round",
    run: 0,
    summary: "a view is installed although the group has changed since it was proposed",
    file: `${LOG_VIEWS}/log-views.ts`,
    find: "if (entry !== null && isCurrent(state, entry.round) && from === coordinatorOf(state))",
    replace: "if (entry !== null && state.isChanging)",
  },
];

export const logMulticastBugs: readonly ChannelBug[] = [
  {
    name: "continues-past-a-snapshot",
    run: 0,
    summary: "a member that skipped messages because of a snapshot continues as if it had delivered them",
    file: "src/protocols/multicast/parts/log-order.ts",
    find: "        if (isEnding(state)) return;\n        const wasInside",
    replace: '        if (isEnding(state) || state.membership === "inside") return;\n        const wasInside',
  },
  {
    name: "in-a-group-without-a-session",
    run: 3,
    summary: "the end of a session does not remove its member from its groups",
    file: "src/protocols/service/coordination-service/sessions.ts",
    find: "  leaveGroups(on, id);\n",
    replace: "",
  },
];

export interface StateTransferBug extends Omit<ServiceBug, "by"> {
  /** The search that finds it. */
  readonly by: "explored" | "left out" | "random runs" | "source crashes" | "another waits";
}

const file = "src/protocols/multicast/parts/state-transfer/transfer.ts";

export const stateTransferBugs: readonly StateTransferBug[] = [
  {
    name: "founds-before-all-reports",
    summary: "a state is founded before every member has reported, although an unreported member may hold one",
    file,
    find: "      if (members.some((node) => known[node] === undefined)) return;\n",
    replace: "",
    by: "random runs",
  },
  {
    name: "every-seeker-founds",
    summary: "every member that needs a state founds one if no member holds it",
    file,
    find: "      const founder = founderOf(state, seekers);\n",
    replace: `      const founder = wants(known[ctx.self]?.is) ? ctx.self : seekers[0];\n`,
    by: "explored",
  },
  {
    name: "lowest-seeker-founds",
    summary: "the founded state lacks messages that another member received while it waited for the state",
    file,
    find: "seekers.length === 0 ? undefined : seekers.reduce(longest)",
    replace: "seekers[0]",
    by: "another waits",
  },
  {
    name: "keeps-what-came-before-the-state",
    summary: "a member that receives the state applies the messages delivered before the state again",
    file,
    find: `    ctx.emit({ type: "placed" });\n`,
    replace: "",
    by: "explored",
  },
  {
    name: "counts-as-holding-though-left-out",
    summary: "a member that was left out of a view continues with its old state",
    file,
    find: `      state.standing = "returning"; // Others may have applied different messages.\n      ctx.emit({ type: "waiting" });\n`,
    replace: "",
    by: "left out",
  },
  {
    name: "silent-in-a-new-view",
    summary: "a member that needs the state does not repeat its request in the next view",
    file,
    find: "      state.waitingSince ??= here(state);\n      say(state, ctx, state.standing);\n",
    replace: "      state.waitingSince ??= here(state);\n",
    by: "source crashes",
  },
  {
    name: "holders-stay-silent",
    summary: "a member that holds the state does not answer when another member asks for it",
    file,
    find: "if (wants(is) && isSilent(state) && from !== ctx.self) say(state, ctx, state.standing);",
    replace: `if (wants(is) && isSilent(state) && from !== ctx.self && state.standing !== "holding") say(state, ctx, state.standing);`,
    by: "source crashes",
  },
  {
    name: "source-unknown-after-it-stopped",
    summary: "a member keeps waiting for a source that no longer holds the state",
    file,
    find: `    if (is !== "holding") abandon(state, from, ctx);\n`,
    replace: "",
    by: "explored",
  },
];
