/**
 * The part that makes the log's configuration follow the member list. As long as the two differ, the leader requests
 * the next step, and repeats the request. The log refuses steps that are not possible yet, such as giving a vote to a
 * new member that cannot be reached. Ongaro, "Consensus: Bridging Theory and Practice", 2014, §4.2.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural, nullable } from "../../../core/shape.ts";
import type { Members } from "../../consensus/family/replicated-log.ts";
import { nextConfiguration } from "./member-list.ts";
import { type MemberList, memberListShape } from "./member-words.ts";

/** Vocabulary of the part that changes the log's configuration. */
export type Configuration = {
  state: { list: MemberList | null; isLeader: boolean };
  timer: "again";
  command: /** From the replica: the current list. */
    | { type: "listed"; list: MemberList }
    /** Commands from the log. */
    | { type: "led"; leader: NodeId | null; term: number };
  event: /** Events for the log. */ { type: "wanted" } & Members;
};

type State = Configuration["state"];
type Ctx = Context<Configuration>;

/** Creates the part. @param againMs how long to wait before repeating a request, in milliseconds */
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
