/**
 * Ricart–Agrawala, extended to handle crashes and recoveries. Processes and `join()` run this variant, with suspicions
 * from a failure detector.
 *
 * With `rejoins`, a node that starts sends *hello* to all nodes. It makes no request until all other nodes have replied
 * to this hello with their clocks. Messages to an earlier incarnation of the node may still arrive, but FIFO links
 * deliver them before the reply. Once a node that has itself joined has replied, the starting node does not need to
 * wait for suspected nodes. Each node journals the times of its last request and its last start.
 *
 * With these rules, ME1 and ME3 hold and tokens increase, as long as no live node is suspected and links are FIFO. ME2
 * holds unless all nodes have been down at once; in that case, no node enters until all are back. A wrong suspicion,
 * for example in a partition, can let two nodes in. A start costs 2(N − 1) messages.
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
    /** The nodes whose welcome this node is still waiting for, in ascending order. */
    unmet: NodeId[];
    /** The time of this node's hello, which no earlier incarnation has used. 0 if the node has not sent a hello. */
    hello: number;
    /** Whether a node that had itself joined has welcomed this node since it started. */
    isInformed: boolean;
    /** Whether the node will make a request once it has joined. */
    wishes: boolean;
  };
  message:
    | RicartAgrawala["message"]
    /** Announces that the sender has started and knows only the content of its journal. */
    | { type: "hello"; time: number }
    /**
     * Replies to the hello with time `to`. `wanted`: the time of the sender's pending request. `joined`: whether the
     * sender has joined, so that all entries so far had lower timestamps.
     */
    | { type: "welcome"; to: number; time: number; wanted: number | null; joined: boolean };
  command: RicartAgrawala["command"];
  event: RicartAgrawala["event"];
  /** Written only with `rejoins`. */
  record: { type: "asked"; time: number };
};

const recoveringOptions = optionTable("ricart-agrawala", {
  rejoins: flag(
    false,
    "whether a node waits for a message from every other node before its first request, and journals its requests",
  ),
});

/** Options of `recoveringRicartAgrawala()`. */
export type RecoveringRicartAgrawalaOptions = OptionsOf<typeof recoveringOptions>;

type State = RecoveringRicartAgrawala["state"];
type Ctx = Context<RecoveringRicartAgrawala>;

/** Casts the context for the textbook algorithm. Its messages and events are a subset of this protocol's. */
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

  /** Makes the delayed request if the node has now joined. */
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
        // The sender's welcome will repeat this request.
        if (!state.unmet.includes(from)) receive.request(state, from, message, asBook(ctx));
      },
      reply(state, from, message, ctx) {
        // A reply that arrives before the sender's welcome was meant for an earlier incarnation.
        if (!state.unmet.includes(from)) receive.reply(state, from, message, asBook(ctx));
      },
      hello(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        exclude(state.unmet, from); // The sender has restarted, so it has no more than its journal.
        exclude(state.suspected, from);
        exclude(state.deferred, from);
        const { section } = state;
        const wanted = section.is === "wanted" && section.awaited.includes(from) ? section.time : null;
        ctx.send(from, { type: "welcome", to: time, time: state.clock, wanted, joined: hasJoined(state) });
        enterIfWished(state, ctx);
      },
      welcome(state, from, { to, time, wanted, joined }, ctx) {
        if (to !== state.hello) return; // The welcome was meant for an earlier incarnation.
        state.clock = tick(state.clock, time);
        state.isInformed ||= joined;
        // If the sender's own hello has arrived in the meantime, so has the request itself, and a single reply is
        // enough.
        if (state.unmet.includes(from) && wanted !== null) consider(from, wanted, state, asBook(ctx));
        exclude(state.unmet, from);
        enterIfWished(state, ctx);
      },
    },
    command: {
      exit: (state, exit, ctx) => command.exit(state, exit, asBook(ctx)),
      restore: (state, restoration, ctx) => command.restore(state, restoration, asBook(ctx)),
      enter(state, _command, ctx) {
        if (state.section.is !== "released") return; // The node is already waiting or inside.
        if (hasJoined(state)) enter(state, ctx);
        else state.wishes = true;
      },
      suspect(state, suspicion, ctx) {
        command.suspect(state, suspicion, asBook(ctx));
        enterIfWished(state, ctx);
      },
    },
    // Without `rejoins`, the node does not need a journal.
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

/** Whether all entries are known, either from all nodes' journals or from a node that has joined. */
const hasJoined = ({ unmet, isInformed, suspected }: State): boolean =>
  unmet.length === 0 || (isInformed && unmet.every((node) => suspected.includes(node)));
