/** Bugs of the state transfer: one thing that it must not forget, forgotten, each. `state-transfer.test.ts` looks for them. */
import type { ServiceBug } from "./service.ts";

export interface StateTransferBug extends Omit<ServiceBug, "by"> {
  /** Which look finds it. */
  readonly by: "explored" | "left out" | "random runs" | "source crashes" | "another waits";
}

const file = "src/protocols/multicast/parts/state-transfer/transfer.ts";

export const stateTransferBugs: readonly StateTransferBug[] = [
  {
    name: "founds-before-all-have-said",
    summary: "a state is founded though a member has not said yet how it stands, and it may hold one",
    file,
    find: "      if (members.some((node) => known[node] === undefined)) return;\n",
    replace: "",
    by: "random runs",
  },
  {
    name: "every-seeker-founds",
    summary: "all that want a state found one, where nobody holds any",
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
    summary: "a member that is given the state applies what was delivered before its place once more",
    file,
    find: `    ctx.emit({ type: "placed" });\n`,
    replace: "",
    by: "explored",
  },
  {
    name: "counts-as-holding-though-left-out",
    summary: "a member that was left out goes on with the state that it had",
    file,
    find: `      state.standing = "returning"; // What it has applied last, others may not have, or in another order.\n      ctx.emit({ type: "waiting" });\n`,
    replace: "",
    by: "left out",
  },
  {
    name: "silent-in-a-new-view",
    summary: "a member that wants the state does not say so again in the next view",
    file,
    find: "      state.waitingSince ??= here(state);\n      say(state, ctx, state.standing);\n",
    replace: "      state.waitingSince ??= here(state);\n",
    by: "source crashes",
  },
  {
    name: "holders-stay-silent",
    summary: "a member that holds the state does not say so when another seeks it",
    file,
    find: "if (wants(is) && isSilent(state) && from !== ctx.self) say(state, ctx, state.standing);",
    replace: `if (wants(is) && isSilent(state) && from !== ctx.self && state.standing !== "holding") say(state, ctx, state.standing);`,
    by: "source crashes",
  },
  {
    name: "source-unknown-after-it-stopped",
    summary: "who waits for a member that holds the state no more goes on to wait for it",
    file,
    find: `    if (is !== "holding") abandon(state, from, ctx);\n`,
    replace: "",
    by: "explored",
  },
];
