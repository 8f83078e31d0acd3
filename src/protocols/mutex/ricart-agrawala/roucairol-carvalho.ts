/**
 * Ricart–Agrawala with lasting permissions: a reply remains valid until its sender makes a request itself. Roucairol &
 * Carvalho, "On mutual exclusion in computer networks", CACM 1983.
 *
 * Assumptions, ME1 and ME2 as in Ricart–Agrawala. No ME3: a node that keeps permissions can enter before an earlier
 * request. 0 … 2(N − 1) messages per entry.
 */
import { tick } from "../../../core/clocks.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { flag, type OptionsOf, optionTable } from "../../options.ts";
import { mutexProperties } from "../family/workload.ts";
import { mustWait, type RicartAgrawala } from "./ricart-agrawala.ts";

/** Vocabulary of Roucairol–Carvalho. */
export type RoucairolCarvalho = {
  state: Omit<RicartAgrawala["state"], "suspected"> & {
    /** The nodes whose replies are still valid for the next request, in ascending order. */
    permitted: NodeId[];
  };
  message: RicartAgrawala["message"];
  command: { type: "enter" } | { type: "exit" };
  event: RicartAgrawala["event"];
};

const roucairolCarvalhoOptions = optionTable("ricart-agrawala", {
  asksAgain: flag(
    true,
    "whether a waiting node that gives up a permission requests it again; without this easily overlooked rule, two nodes can be inside",
  ),
});

/** Options of `roucairolCarvalho()`. */
export type RoucairolCarvalhoOptions = OptionsOf<typeof roucairolCarvalhoOptions>;

type State = RoucairolCarvalho["state"];
type Ctx = Context<RoucairolCarvalho>;

/** Creates the Roucairol–Carvalho variant. @throws UsageError if an option is unknown or out of range. */
export function roucairolCarvalho(given?: Partial<RoucairolCarvalhoOptions>): Protocol<RoucairolCarvalho> {
  const { asksAgain } = roucairolCarvalhoOptions.settle(given);
  return {
    name: "ricart-agrawala",
    init: () => ({ clock: 0, section: { is: "released" }, deferred: [], permitted: [] }),
    receive: {
      request(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        const { section } = state;
        if (mustWait(section, { time, node: from }, ctx.self)) return include(state.deferred, from);
        ctx.send(from, { type: "reply", time: state.clock });
        exclude(state.permitted, from);
        if (!asksAgain || section.is !== "wanted" || section.awaited.includes(from)) return;
        include(section.awaited, from); // The sender's permission was valid until now.
        ctx.send(from, { type: "request", time: section.time });
      },
      reply(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        if (state.section.is !== "wanted") return; // On links that deliver only once, no reply can arrive now.
        exclude(state.section.awaited, from);
        include(state.permitted, from);
        enterUnlessWaiting(state, ctx);
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section.is !== "released") return; // The node is already waiting or inside.
        state.clock = tick(state.clock);
        const awaited = ctx.peers.filter((peer) => !state.permitted.includes(peer));
        state.section = { is: "wanted", time: state.clock, awaited };
        for (const peer of awaited) ctx.send(peer, { type: "request", time: state.clock });
        enterUnlessWaiting(state, ctx);
      },
      exit(state, _command, ctx) {
        if (state.section.is !== "held") return; // The node is not inside.
        state.clock = tick(state.clock);
        state.section = { is: "released" };
        for (const waiting of state.deferred) ctx.send(waiting, { type: "reply", time: state.clock });
        state.permitted = state.permitted.filter((node) => !state.deferred.includes(node));
        state.deferred = [];
        ctx.emit({ type: "exited" });
      },
    },
    shapes: {
      message: { request: { time: natural }, reply: { time: natural } },
      command: { enter: {}, exit: {} },
    },
    source: "Roucairol & Carvalho, CACM 1983",
    assumes: ["no crashes", "reliable links, each message once", "no node stays inside forever"],
    properties: mutexProperties<RoucairolCarvalho>(({ section }) => section.is),
    costs: [{ when: "one entry and exit without cached permissions", messages: (nodes) => 2 * (nodes - 1) }],
    view: ({ section }) => ({ role: section.is }),
  };
}

/**
 * Enters once all permissions have been received. The token is Lamport's clock, because entries do not follow the order
 * of requests. As long as no node crashes, the token increases: a node that enters after p has left holds a reply that
 * p sent when it left or later. (If p had replied earlier, it would have had to ask again and wait.) That reply carries
 * p's clock.
 */
function enterUnlessWaiting(state: State, ctx: Ctx): void {
  const { section } = state;
  if (section.is !== "wanted" || section.awaited.length > 0) return;
  state.section = { is: "held", time: section.time };
  ctx.emit({ type: "entered", token: state.clock });
}
