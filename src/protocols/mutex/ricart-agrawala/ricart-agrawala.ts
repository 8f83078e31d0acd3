/**
 * Ricart–Agrawala: a node that wants to enter asks all other nodes. A node that is inside, or has made an earlier
 * request, replies later. Ricart & Agrawala, "An Optimal Algorithm for Mutual Exclusion in Computer Networks", CACM
 * 1981; terms of Coulouris et al. §15.2.
 *
 * Assumes   no crashes; reliable links, in any order, each message once; no node stays inside forever.
 * Safety    ME1: at most one node is inside. ME3: no node enters before a request that happened before its own.
 * Liveness  ME2: every request is eventually granted.
 * Cost      2(N − 1) messages per entry: N − 1 requests and N − 1 replies. A client waits 2 message delays to enter; a
 *           hand-over takes 1.
 *
 * Unlike in the paper, a reply carries its sender's clock, so that the receiver's next request is later than the reply.
 *
 * With crash notifications (`suspect`), a node does not wait for replies from suspected nodes. `recovering.ts` lets
 * nodes recover, and `roucairol-carvalho.ts` sends fewer requests.
 */
import { precedes, type Stamp, tick } from "../../../core/clocks.ts";
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { requireNoOptions } from "../../options.ts";
import { mutexProperties } from "../family/workload.ts";

/** Vocabulary of Ricart–Agrawala. */
export type RicartAgrawala = {
  state: {
    /** Lamport's clock. Every step that is caused by a message or by the application is an event. */
    clock: number;
    section: Section;
    /** The nodes that will not get a reply to their requests until this node leaves, in ascending order. */
    deferred: NodeId[];
    /** The nodes that this node does not wait for replies from, in ascending order. */
    suspected: NodeId[];
  };
  message: { type: "request"; time: number } | { type: "reply"; time: number };
  /** `enter` is ignored unless the section is `released`; `exit` is ignored unless it is `held`. */
  command: { type: "enter" } | { type: "exit" } | { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId };
  /** The token is the request's timestamp, so it increases from one entry to the next, across all nodes. */
  event: { type: "entered"; token: number } | { type: "exited" };
};

/**
 * A node's relation to the section: outside and idle; waiting, with the request's time T and the nodes that have not
 * replied; or inside.
 */
export type Section =
  | { is: "released" }
  | { is: "wanted"; time: number; awaited: NodeId[] }
  | { is: "held"; time: number };

type State = RicartAgrawala["state"];
type Ctx = Context<RicartAgrawala>;

/**
 * Creates the textbook Ricart–Agrawala algorithm.
 * @throws UsageError if any option is given, because there are none.
 */
export function ricartAgrawala(given?: Record<never, never>): Protocol<RicartAgrawala> {
  requireNoOptions("ricart-agrawala", given);
  return {
    name: "ricart-agrawala",
    init: () => ({ clock: 0, section: { is: "released" }, deferred: [], suspected: [] }),
    receive: {
      request(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        consider(from, time, state, ctx);
      },
      reply(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        if (state.section.is !== "wanted") return; // On links that deliver only once, no reply can arrive now.
        exclude(state.section.awaited, from);
        enterUnlessWaiting(state, ctx);
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section.is !== "released") return; // The node is already waiting or inside.
        state.clock = tick(state.clock);
        state.section = { is: "wanted", time: state.clock, awaited: [...ctx.peers] };
        for (const peer of ctx.peers) ctx.send(peer, { type: "request", time: state.clock });
        enterUnlessWaiting(state, ctx); // A lone node has no replies to wait for.
      },
      exit(state, _command, ctx) {
        if (state.section.is !== "held") return; // The node is not inside.
        state.clock = tick(state.clock);
        state.section = { is: "released" };
        for (const waiting of state.deferred) ctx.send(waiting, { type: "reply", time: state.clock });
        state.deferred = [];
        ctx.emit({ type: "exited" });
      },
      suspect(state, { node }, ctx) {
        include(state.suspected, node);
        enterUnlessWaiting(state, ctx);
      },
      restore: (state, { node }) => exclude(state.suspected, node),
    },
    shapes: {
      message: { request: { time: natural }, reply: { time: natural } },
      command: { enter: {}, exit: {}, suspect: { node: natural }, restore: { node: natural } },
    },
    source: "Ricart & Agrawala, CACM 1981; Coulouris et al. §15.2",
    assumes: ["no crashes", "reliable links, each message once", "no node stays inside forever"],
    properties: [...mutexProperties<RicartAgrawala>(({ section }) => section.is), orderedEntries],
    costs: [{ when: "one entry and exit", messages: (nodes) => 2 * (nodes - 1) }],
    view: ({ section }) => ({ role: section.is }),
  };
}

/** Replies to a request, or defers the reply until this node exits. */
export function consider(from: NodeId, time: number, state: State, ctx: Ctx): void {
  if (mustWait(state.section, { time, node: from }, ctx.self)) include(state.deferred, from);
  else ctx.send(from, { type: "reply", time: state.clock });
}

/** Whether state = HELD, or state = WANTED and (T, pi) < (Tj, pj). */
export const mustWait = (section: Section, request: Stamp, self: NodeId): boolean =>
  section.is === "held" || (section.is === "wanted" && precedes({ time: section.time, node: self }, request));

/** Enters once all unsuspected nodes have replied. */
function enterUnlessWaiting(state: State, ctx: Ctx): void {
  const { section } = state;
  if (section.is !== "wanted" || !section.awaited.every((node) => state.suspected.includes(node))) return;
  state.section = { is: "held", time: section.time };
  ctx.emit({ type: "entered", token: stampOf(section.time, ctx) });
}

/**
 * Returns (T, p) as a number. Entries occur in the order of these numbers. A node that has replied to p knows T, even
 * if p crashes inside.
 */
const stampOf = (time: number, { self, peers }: Ctx): number =>
  time * (peers.length + 1) + peers.filter((peer) => peer < self).length;

/** Entries follow the happened-before order of the requests. */
export const orderedEntries: Property<RicartAgrawala> = {
  name: "ME3 ordering",
  // Lamport's clocks give a request a lower timestamp than every request that it happened before.
  claim: "no node is inside while a request with a lower timestamp (T, p) waits",
  when: "always",
  holds({ alive, state }) {
    const isAhead = (waiting: NodeId, inside: NodeId): boolean => {
      const [early, late] = [state(waiting).section, state(inside).section];
      if (early.is !== "wanted" || late.is !== "held") return false;
      return precedes({ time: early.time, node: waiting }, { time: late.time, node: inside });
    };
    return alive.every((inside) => !alive.some((waiting) => isAhead(waiting, inside)));
  },
};
