import { MemberTrace } from "../../src/cluster/services/member-trace.ts";

/** The trace of a member without admin pages, which nobody can listen to. */
export const untraced = new MemberTrace(0, { stamp: () => 0 }, false);
