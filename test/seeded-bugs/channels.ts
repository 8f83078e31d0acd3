/** Bugs of channels in views on the log. `channels.test.ts` looks for them. */
import type { ServiceBug } from "./service.ts";

export type ChannelBug = Omit<ServiceBug, "by">;

const VIEWS = "src/protocols/membership/log-views.ts";

export const channelBugs: readonly ChannelBug[] = [
  {
    name: "least-of-survivors",
    summary: "the cut is the least that a survivor has received of each sender, and not the most",
    file: VIEWS,
    find: "Math.max(...survivors.map(",
    replace: "Math.min(...survivors.map(",
  },
  {
    name: "view-before-filled",
    summary: "the coordinator proposes the view before all members have what they lack of the cut",
    file: VIEWS,
    find: "if (filling === null || filling.awaited.length > 0 || state.isProposed) return;",
    replace: "if (filling === null || state.isProposed) return;",
  },
  {
    name: "view-of-an-earlier-round",
    summary: "a view is installed though the group has changed since it was proposed",
    file: VIEWS,
    find: "if (entry !== null && isCurrent(state, entry.round) && from === coordinatorOf(state))",
    replace: "if (entry !== null && state.isChanging)",
  },
  {
    name: "expelled-member-continues",
    summary: "a member that was removed from the group continues in its view",
    file: VIEWS,
    find: '          if (membership === "entering") return;\n          dropOut(state, ctx);',
    replace: '          if (membership === "entering" || isInView(state)) return;\n          dropOut(state, ctx);',
  },
  {
    name: "view-continues-past-a-snapshot",
    summary: "a member that a snapshot took past changes of the group continues in its view",
    file: VIEWS,
    find: '        if (state.membership === "left") return;\n        dropOut(state, ctx);\n        enter(state, ctx);\n      },\n      notDone',
    replace:
      '        if (state.membership !== "entering") return;\n        enter(state, ctx);\n      },\n      notDone',
  },
  {
    name: "suspects-stay",
    summary: "a suspected member is not expelled",
    file: VIEWS,
    find: "        expel(state, state.suspected, ctx);\n",
    replace: "",
  },
];
