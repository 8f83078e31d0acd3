/**
 * Makes the configuration of the log follow the member list. The leader requests the next step, and repeats the request
 * for as long as the two differ: the log refuses steps that are not possible yet, such as the vote of a new member that
 * is not reachable.
 * Ongaro, "Consensus: Bridging Theory and Practice", 2014, §4.2.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural, nullable } from "../../../core/shape.ts";
import type { Members } from "../../consensus/family/replicated-log.ts";
import { nextConfiguration } from "./member-list.ts";
import { type MemberList, memberListShape } from "./member-words.ts";

export type Configuration = {
  state: { list: MemberList | null; isLeader: boolean };
  timer: "again";
  command: /** From the replica: the list from here on. */
    | { type: "listed"; list: MemberList }
    /** From the log. */
    | { type: "led"; leader: NodeId | null; term: number };
  event: /** To the log. */ { type: "wanted" } & Members;
};

type State = Configuration["state"];
type Ctx = Context<Configuration>;

/** @param againMs the delay before a request is repeated, in milliseconds. */
export function configuration(againMs = 200): Protocol<Configuration> {
  function ask(state: State, ctx: Ctx): void {
    ctx.cancelTimer("again");
    if (!state.isLeader || state.list === null) return;
    const next = nextConfiguration(state.list);
    if (next === null) return;
    ctx.emit({ type: "wanted", ...next });
    ctx.setTimer("again", againMs);
  }

  return {
    name: "configuration",
    init: () => ({ list: null, isLeader: false }),
    timeout: { again: ask },
    command: {
      listed(state, { list }, ctx) {
        state.list = list;
        ask(state, ctx);
      },
      led(state, { leader }, ctx) {
        state.isLeader = leader === ctx.self;
        ask(state, ctx);
      },
    },
    shapes: { command: { listed: { list: memberListShape }, led: { leader: nullable(natural), term: natural } } },
    source: "Ongaro 2014, §4.2",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ list, isLeader }) => ({
      role: isLeader && list !== null && nextConfiguration(list) !== null ? "changing" : "settled",
    }),
  };
}
