/**
 * Ricart–Agrawala with crashes and recoveries, as processes and `join()` run it, with suspicions from a failure detector.
 *
 * With `rejoins`, a node that starts sends *hello* to all nodes. It makes no request until all other nodes have sent it
 * their clocks in reply to this hello. Messages to an earlier life of the node may still arrive, but FIFO links deliver
 * them before that reply. The node need not wait for suspected nodes once a node has replied that knows more than its
 * journal. Each node journals the time of its last request and of its last start.
 *
 * Then ME1 and ME3 hold and tokens increase, as long as no alive node is suspected and links are FIFO. ME2 holds unless
 * all nodes have been down at once: then no node enters until all are back. A wrong suspicion, as in a partition, lets
 * two nodes in. A start costs 2(N − 1) messages.
 */
import { tick } from "../../../core/clocks.ts";
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { boolean, natural, nullable } from "../../../core/shape.ts";
import { exclude } from "../../node-set.ts";
import { flag, type OptionsOf, optionTable } from "../../options.ts";
import { mutexProperties } from "../family/workload.ts";
import { consider, orderedEntries, type RicartAgrawala, ricartAgrawala } from "./ricart-agrawala.ts";

/** Vocabulary of Ricart–Agrawala with recovery. */
export type RecoveringRicartAgrawala = {
  state: RicartAgrawala["state"] & {
    /** Nodes whose welcome this node has waited for since it started. Ascending. */
    unmet: NodeId[];
    /** The time of its hello, which no earlier life has used. 0 if it has sent none. */
    hello: number;
    /** Whether a node that had joined has welcomed it since it started. */
    isInformed: boolean;
    /** Whether it will make a request once it has joined. */
    wishes: boolean;
  };
  message:
    | RicartAgrawala["message"]
    /** The sender has started and knows only its journal. */
    | { type: "hello"; time: number }
    /**
     * Reply to the hello of time `to`. `wanted`: the sender's pending request. `joined`: all entries so far had lower
     * timestamps.
     */
    | { type: "welcome"; to: number; time: number; wanted: number | null; joined: boolean };
  command: RicartAgrawala["command"];
  event: RicartAgrawala["event"];
  /** With `rejoins`. */
  record: { type: "asked"; time: number };
};

const recoveringOptions = optionTable("ricart-agrawala", {
  rejoins: flag(
    false,
    "whether a node waits for a message from all others before its first request, and journals its requests",
  ),
});

/** Options of `recoveringRicartAgrawala()`. */
export type RecoveringRicartAgrawalaOptions = OptionsOf<typeof recoveringOptions>;

type State = RecoveringRicartAgrawala["state"];
type Ctx = Context<RecoveringRicartAgrawala>;

/** A context for the textbook's node, whose messages and events are a subset of this protocol's. */
const asBook = (ctx: Ctx): Context<RicartAgrawala> => ctx as unknown as Context<RicartAgrawala>;

/** Creates Ricart–Agrawala with recovery. @throws UsageError if an option is unknown or out of range. */
export function recoveringRicartAgrawala(
  given?: Partial<RecoveringRicartAgrawalaOptions>,
): Protocol<RecoveringRicartAgrawala> {
  const { rejoins } = recoveringOptions.settle(given);
  const { init, receive, command, shapes, ...book } = ricartAgrawala();

  function enter(state: State, ctx: Ctx): void {
    if (rejoins) ctx.compact([{ type: "asked", time: tick(state.clock) }]); // The time of the request made in this step.
    command.enter(state, { type: "enter" }, asBook(ctx));
  }

  /** Makes the delayed request if the node has joined now. */
  function enterIfWished(state: State, ctx: Ctx): void {
    if (!state.wishes || !hasJoined(state)) return;
    state.wishes = false;
    enter(state, ctx);
  }

  const asked = (state: State, { time }: RecoveringRicartAgrawala["record"]): void => {
    state.clock = time;
  };

  return {
    ...book,
    init: (self, peers) => ({ ...init(self, peers), unmet: [], hello: 0, isInformed: false, wishes: false }),
    start(state, ctx) {
      if (!rejoins) return;
      state.unmet = [...ctx.peers];
      state.clock = tick(state.clock);
      state.hello = state.clock;
      ctx.compact([{ type: "asked", time: state.clock }]);
      ctx.broadcast({ type: "hello", time: state.clock });
    },
    receive: {
      request(state, from, message, ctx) {
        if (!state.unmet.includes(from)) receive.request(state, from, message, asBook(ctx)); // Its welcome repeats this.
      },
      reply(state, from, message, ctx) {
        if (!state.unmet.includes(from)) receive.reply(state, from, message, asBook(ctx)); // To an earlier life.
      },
      hello(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        exclude(state.unmet, from); // Its other knowledge is lost.
        exclude(state.suspected, from);
        exclude(state.deferred, from);
        const { section } = state;
        const wanted = section.is === "wanted" && section.awaited.includes(from) ? section.time : null;
        ctx.send(from, { type: "welcome", to: time, time: state.clock, wanted, joined: hasJoined(state) });
        enterIfWished(state, ctx);
      },
      welcome(state, from, { to, time, wanted, joined }, ctx) {
        if (to !== state.hello) return; // It is to an earlier life, and so may be what comes next.
        state.clock = tick(state.clock, time);
        state.isInformed ||= joined;
        // If its own hello has arrived meanwhile, so has the request itself, and one reply is enough.
        if (state.unmet.includes(from) && wanted !== null) consider(from, wanted, state, asBook(ctx));
        exclude(state.unmet, from);
        enterIfWished(state, ctx);
      },
    },
    command: {
      exit: (state, exit, ctx) => command.exit(state, exit, asBook(ctx)),
      restore: (state, restoration, ctx) => command.restore(state, restoration, asBook(ctx)),
      enter(state, _command, ctx) {
        if (state.section.is !== "released") return; // It is waiting or inside already.
        if (hasJoined(state)) enter(state, ctx);
        else state.wishes = true;
      },
      suspect(state, suspicion, ctx) {
        command.suspect(state, suspicion, asBook(ctx));
        enterIfWished(state, ctx);
      },
    },
    // Otherwise the node needs no journal.
    replay: (rejoins ? { asked } : {}) as { asked: typeof asked },
    shapes: {
      message: {
        ...shapes.message,
        hello: { time: natural },
        welcome: { to: natural, time: natural, wanted: nullable(natural), joined: boolean },
      },
      command: shapes.command,
      record: { asked: { time: natural } },
    },
    properties: [
      ...mutexProperties<RecoveringRicartAgrawala>(({ section, wishes }) => (wishes ? "wanted" : section.is)),
      orderedEntries as unknown as Property<RecoveringRicartAgrawala>,
    ],
  };
}

/** Whether every entry is known: from the journals of all nodes, or from a node that has joined. */
const hasJoined = ({ unmet, isInformed, suspected }: State): boolean =>
  unmet.length === 0 || (isInformed && unmet.every((node) => suspected.includes(node)));
