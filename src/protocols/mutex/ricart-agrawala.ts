/**
 * Ricart–Agrawala: whoever wants in asks everybody, and whoever is inside, or asked earlier, answers later.
 * Ricart & Agrawala, "An Optimal Algorithm for Mutual Exclusion in Computer Networks", CACM 1981; words of Coulouris et
 * al. §15.2.
 *
 * Assumes   no crashes; reliable links, in any order, each message once; whoever is inside leaves.
 * Safety    ME1: at most one node is inside. ME3: nobody enters before a request that happened before its own.
 * Liveness  ME2: every request is granted in the end.
 * Cost      2(N − 1) messages per entry: N − 1 requests, N − 1 replies. Client delay 2 message times, hand-over 1.
 *
 * With `keepsPermissions` (Roucairol & Carvalho, "On mutual exclusion in computer networks", CACM 1983) a reply counts
 * until its sender asks itself: 0 … 2(N − 1) messages per entry, and no ME3.
 */
import { precedes, type Stamp, tick } from "../../core/clocks.ts";
import type { Context, NodeId, Property, Protocol } from "../../core/protocol.ts";
import { boolean, natural, struct } from "../../core/shape.ts";
import { exclude, include } from "../node-set.ts";
import { settle } from "../options.ts";
import { requirements } from "./parts/requirements.ts";

export type RicartAgrawala = {
  state: {
    /** Lamport's clock: every step that a message or the application causes is an event. */
    clock: number;
    section: Section;
    /** Whose requests wait for a reply until this node leaves. Ascending. */
    deferred: NodeId[];
    /** Whose replies still count for the next request. Ascending; empty unless permissions are kept. */
    permitted: NodeId[];
  };
  message: { type: "request"; time: number } | { type: "reply"; time: number };
  /** `enter` counts when released, `exit` when held. */
  command: { type: "enter" } | { type: "exit" };
  event: { type: "entered" } | { type: "exited" };
};

/** Outside and not interested; asking, with the time T of the request and those who have not replied; inside. */
type Section = { is: "released" } | { is: "wanted"; time: number; awaited: NodeId[] } | { is: "held"; time: number };

export interface RicartAgrawalaOptions {
  /** Does not ask whoever has replied and has not asked since. */
  keepsPermissions: boolean;
  /**
   * Asks again whoever it gives its permission back to while it waits itself. Without this rule, which is easily
   * overlooked, two nodes can be inside.
   */
  asksAgain: boolean;
}

const defaults: RicartAgrawalaOptions = { keepsPermissions: false, asksAgain: true };

const optionShape = struct<RicartAgrawalaOptions>({ keepsPermissions: boolean, asksAgain: boolean });

type State = RicartAgrawala["state"];
type Ctx = Context<RicartAgrawala>;

export function ricartAgrawala(given?: Partial<RicartAgrawalaOptions>): Protocol<RicartAgrawala> {
  const { keepsPermissions, asksAgain } = settle(defaults, optionShape, given, "ricart-agrawala");

  function enterIfAllReplied(state: State, ctx: Ctx): void {
    const { section } = state;
    if (section.is !== "wanted" || section.awaited.length > 0) return;
    state.section = { is: "held", time: section.time };
    ctx.emit({ type: "entered" });
  }

  /** state = HELD, or state = WANTED and (T, pi) < (Tj, pj). */
  const mustWait = ({ section }: State, request: Stamp, self: NodeId): boolean =>
    section.is === "held" || (section.is === "wanted" && precedes({ time: section.time, node: self }, request));

  return {
    name: "ricart-agrawala",
    init: () => ({ clock: 0, section: { is: "released" }, deferred: [], permitted: [] }),
    receive: {
      request(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        if (mustWait(state, { time, node: from }, ctx.self)) return include(state.deferred, from);
        ctx.send(from, { type: "reply", time: state.clock });
        exclude(state.permitted, from);
        const { section } = state;
        if (!keepsPermissions || !asksAgain || section.is !== "wanted" || section.awaited.includes(from)) return;
        include(section.awaited, from); // Its permission counted so far, and does not any more.
        ctx.send(from, { type: "request", time: section.time });
      },
      reply(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        if (state.section.is !== "wanted") return; // Links that deliver once leave nobody to reply now.
        exclude(state.section.awaited, from);
        if (keepsPermissions) include(state.permitted, from);
        enterIfAllReplied(state, ctx);
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section.is !== "released") return; // It asks already, or is inside.
        state.clock = tick(state.clock);
        const awaited = ctx.peers.filter((peer) => !state.permitted.includes(peer));
        state.section = { is: "wanted", time: state.clock, awaited };
        for (const peer of awaited) ctx.send(peer, { type: "request", time: state.clock });
        enterIfAllReplied(state, ctx); // Alone, it has nobody to wait for.
      },
      exit(state, _command, ctx) {
        if (state.section.is !== "held") return; // It is not inside.
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
    source: "Ricart & Agrawala, CACM 1981; Coulouris et al. §15.2",
    assumes: ["no crashes", "reliable links, each message once", "whoever is inside leaves"],
    properties: keepsPermissions ? properties.filter(({ name }) => name !== ME3) : properties,
    costs: [{ when: "one entry and exit", messages: (nodes) => 2 * (nodes - 1) }],
    view: ({ section }) => ({ role: section.is }),
  };
}

const ME3 = "ME3 ordering";

const properties: readonly Property<RicartAgrawala>[] = [
  ...requirements<RicartAgrawala>(({ section }) => section.is),
  {
    name: ME3,
    // Lamport's clocks make the stamp of a request lower than that of every request which it happened before.
    claim: "nobody is inside while a request with a lower stamp (T, p) waits",
    when: "always",
    holds({ alive, state }) {
      const isAhead = (waiting: NodeId, inside: NodeId): boolean => {
        const [early, late] = [state(waiting).section, state(inside).section];
        if (early.is !== "wanted" || late.is !== "held") return false;
        return precedes({ time: early.time, node: waiting }, { time: late.time, node: inside });
      };
      return alive.every((inside) => !alive.some((waiting) => isAhead(waiting, inside)));
    },
  },
];
