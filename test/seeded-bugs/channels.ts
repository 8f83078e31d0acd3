/** Bugs of channels in views on the log. `channels.test.ts` looks for them. */
import type { ServiceBug } from "./service.ts";

export type ChannelBug = Omit<ServiceBug, "by">;

const FOLDER = "src/protocols/multicast/parts/log-views";

export const channelBugs: readonly ChannelBug[] = [
  {
    name: "least-of-survivors",
    summary: "the cut is the least that a survivor has received of each sender, and not the most",
    file: `${FOLDER}/vocabulary.ts`,
    find: "Math.max(...survivors.map(",
    replace: "Math.min(...survivors.map(",
  },
  {
    name: "view-of-an-earlier-round",
    summary: "a view is installed though the group has changed since it was proposed",
    file: `${FOLDER}/log-views.ts`,
    find: "if (entry !== null && isCurrent(state, entry.round) && from === coordinatorOf(state))",
    replace: "if (entry !== null && state.isChanging)",
  },
];
