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
 *
 * Told of suspicions, by a failure detector, it does not wait for who is suspected; with `rejoins`, a node that starts
 * asks for nothing before it has heard of all others how far their clocks are. It may do without those that are suspected
 * once it has heard of one that knows more than its journal, in which each node keeps the time of its last request. Then
 * crashes and recoveries are allowed, as long as nobody is suspected who is alive and links are FIFO: ME1 and ME3 hold,
 * tokens grow, and ME2 holds unless all have been down at once: then nobody enters before all are back. A wrong
 * suspicion, as in a partition, lets two in. 2(N − 1) messages per start.
 */
import { precedes, type Stamp, tick } from "../../core/clocks.ts";
import type { Context, NodeId, Property, Protocol } from "../../core/protocol.ts";
import { boolean, natural, nullable, struct } from "../../core/shape.ts";
import { exclude, include } from "../node-set.ts";
import { settle } from "../options.ts";
import { mutexProperties } from "./family/properties.ts";

export type RicartAgrawala = {
  state: {
    /** Lamport's clock: every step that a message or the application causes is an event. */
    clock: number;
    section: Section;
    /** Whose requests wait for a reply until this node leaves. Ascending. */
    deferred: NodeId[];
    /** Whose replies still count for the next request. Ascending; empty unless permissions are kept. */
    permitted: NodeId[];
    /** For whose replies it does not wait. Ascending. */
    suspected: NodeId[];
    /** Whose welcome it waits for, having started. Ascending. */
    unmet: NodeId[];
    /** Whether somebody has welcomed it who knew how far clocks are, since it started. */
    isInformed: boolean;
    /** Whether it asks as soon as it may. */
    wishes: boolean;
  };
  message:
    | { type: "request"; time: number }
    | { type: "reply"; time: number }
    /** I have started, and know nothing but my journal. */
    | { type: "hello"; time: number }
    /** With the request that waits for a reply. `joined`: all that have entered so far did so with lower stamps. */
    | { type: "welcome"; time: number; wanted: number | null; joined: boolean };
  /** `enter` counts when released, `exit` when held. */
  command: { type: "enter" } | { type: "exit" } | { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId };
  /** The token grows from one entry to the next, whoever enters: see `enterIfAllReplied`. */
  event: { type: "entered"; token: number } | { type: "exited" };
  /** With `rejoins`. */
  record: { type: "asked"; time: number };
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
  /** Hears of all others before it asks for anything, and journals when it asks. */
  rejoins: boolean;
}

const defaults: RicartAgrawalaOptions = { keepsPermissions: false, asksAgain: true, rejoins: false };

const optionShape = struct<RicartAgrawalaOptions>({ keepsPermissions: boolean, asksAgain: boolean, rejoins: boolean });

type State = RicartAgrawala["state"];
type Ctx = Context<RicartAgrawala>;

/** (T, p) as a number. Whoever replied to p knows T, also if p crashes inside. */
const stampOf = (time: number, { self, peers }: Ctx): number =>
  time * (peers.length + 1) + peers.filter((peer) => peer < self).length;

/** The journals of all together know of every entry; so does whoever has joined. */
const hasJoined = ({ unmet, isInformed, suspected }: State): boolean =>
  unmet.length === 0 || (isInformed && unmet.every((node) => suspected.includes(node)));

export function ricartAgrawala(given?: Partial<RicartAgrawalaOptions>): Protocol<RicartAgrawala> {
  const { keepsPermissions, asksAgain, rejoins } = settle(defaults, optionShape, given, "ricart-agrawala");

  /**
   * The token is the stamp of the request, since entries are in their order. Where permissions are kept they are not, and
   * the token is Lamport's clock. It grows while nobody crashes: whoever enters after p has left holds a reply that p sent
   * when it left or later, since a reply of before would have made p ask once more and wait in turn; and that reply
   * carries p's clock.
   */
  function enterIfAllReplied(state: State, ctx: Ctx): void {
    const { section } = state;
    if (section.is !== "wanted" || !section.awaited.every((node) => state.suspected.includes(node))) return;
    state.section = { is: "held", time: section.time };
    ctx.emit({ type: "entered", token: keepsPermissions ? state.clock : stampOf(section.time, ctx) });
  }

  function ask(state: State, ctx: Ctx): void {
    state.clock = tick(state.clock);
    if (rejoins) ctx.compact([{ type: "asked", time: state.clock }]);
    const awaited = ctx.peers.filter((peer) => !state.permitted.includes(peer));
    state.section = { is: "wanted", time: state.clock, awaited };
    for (const peer of awaited) ctx.send(peer, { type: "request", time: state.clock });
    enterIfAllReplied(state, ctx); // Alone, it has nobody to wait for.
  }

  /** Somebody has been heard of, or is suspected. */
  function goOn(state: State, ctx: Ctx): void {
    if (state.wishes && hasJoined(state)) {
      state.wishes = false;
      ask(state, ctx);
    } else enterIfAllReplied(state, ctx);
  }

  function consider(from: NodeId, time: number, state: State, ctx: Ctx): void {
    if (mustWait(state, { time, node: from }, ctx.self)) return include(state.deferred, from);
    ctx.send(from, { type: "reply", time: state.clock });
    exclude(state.permitted, from);
    const { section } = state;
    if (!keepsPermissions || !asksAgain || section.is !== "wanted" || section.awaited.includes(from)) return;
    include(section.awaited, from); // Its permission counted so far, and does not any more.
    ctx.send(from, { type: "request", time: section.time });
  }

  /** state = HELD, or state = WANTED and (T, pi) < (Tj, pj). */
  const mustWait = ({ section }: State, request: Stamp, self: NodeId): boolean =>
    section.is === "held" || (section.is === "wanted" && precedes({ time: section.time, node: self }, request));

  const asked = (state: State, { time }: RicartAgrawala["record"]): void => {
    state.clock = time;
  };

  return {
    name: "ricart-agrawala",
    init: () => ({
      clock: 0,
      section: { is: "released" },
      deferred: [],
      permitted: [],
      suspected: [],
      unmet: [],
      isInformed: false,
      wishes: false,
    }),
    start(state, ctx) {
      if (!rejoins) return;
      state.unmet = [...ctx.peers];
      ctx.broadcast({ type: "hello", time: state.clock });
    },
    receive: {
      request(state, from, { time }, ctx) {
        if (state.unmet.includes(from)) return; // Its welcome will say so again.
        state.clock = tick(state.clock, time);
        consider(from, time, state, ctx);
      },
      reply(state, from, { time }, ctx) {
        if (state.unmet.includes(from)) return; // To what this node asked for in an earlier life.
        state.clock = tick(state.clock, time);
        if (state.section.is !== "wanted") return; // Links that deliver once leave nobody to reply now.
        exclude(state.section.awaited, from);
        if (keepsPermissions) include(state.permitted, from);
        enterIfAllReplied(state, ctx);
      },
      hello(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        exclude(state.unmet, from); // What else it could have told it has forgotten.
        exclude(state.suspected, from);
        exclude(state.deferred, from);
        const { section } = state;
        const wanted = section.is === "wanted" && section.awaited.includes(from) ? section.time : null;
        ctx.send(from, { type: "welcome", time: state.clock, wanted, joined: hasJoined(state) });
        goOn(state, ctx);
      },
      welcome(state, from, { time, wanted, joined }, ctx) {
        state.clock = tick(state.clock, time);
        state.isInformed ||= joined;
        // A second one, as an earlier life had said hello too: the request has come by itself, and one reply is enough.
        if (!state.unmet.includes(from)) return goOn(state, ctx);
        exclude(state.unmet, from);
        if (wanted !== null) consider(from, wanted, state, ctx);
        goOn(state, ctx);
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section.is !== "released") return; // It asks already, or is inside.
        if (hasJoined(state)) ask(state, ctx);
        else state.wishes = true;
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
      suspect(state, { node }, ctx) {
        include(state.suspected, node);
        goOn(state, ctx);
      },
      restore: (state, { node }) => exclude(state.suspected, node),
    },
    // Otherwise it keeps no journal, and needs none.
    replay: (rejoins ? { asked } : {}) as { asked: typeof asked },
    shapes: {
      message: {
        request: { time: natural },
        reply: { time: natural },
        hello: { time: natural },
        welcome: { time: natural, wanted: nullable(natural), joined: boolean },
      },
      command: { enter: {}, exit: {}, suspect: { node: natural }, restore: { node: natural } },
      record: { asked: { time: natural } },
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
  ...mutexProperties<RicartAgrawala>(({ section, wishes }) => (wishes ? "wanted" : section.is)),
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
