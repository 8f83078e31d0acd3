/** Bugs of the multicast through a log: who has missed something, or is gone, stays in the group. `log-multicast.test.ts` looks for them. */
import type { ServiceBug } from "./service.ts";

export type LogMulticastBug = Omit<ServiceBug, "by">;

export const logMulticastBugs: readonly LogMulticastBug[] = [
  {
    name: "goes-on-past-a-snapshot",
    summary: "a member that a snapshot took past messages goes on as if it had delivered them",
    file: "src/protocols/multicast/parts/log-order.ts",
    find: "        if (isEnding(state)) return;\n        const wasInside",
    replace: '        if (isEnding(state) || state.membership === "inside") return;\n        const wasInside',
  },
  {
    name: "in-a-group-without-a-session",
    summary: "the end of a session does not take its member out of its groups",
    file: "src/protocols/service/coordination-service/sessions.ts",
    find: "  leaveGroups(on, id);\n",
    replace: "",
  },
];
