/**
 * Ricart–Agrawala with crashes and recoveries, as processes and `join()` run it, where a failure detector tells of suspicions.
 *
 * With `rejoins`, a node that starts says *hello* to all and asks for nothing before it has heard of all others how far
 * their clocks are, in answer to this very hello: what a node says to an earlier life of it may still arrive, and links keep that
 * before the answer. It may do without those that are suspected once it has heard of one that knows more than its journal,
 * in which each node keeps the time of its last request and of its last start. Then ME1 and ME3 hold and tokens grow, as long as nobody is
 * suspected who is alive and links are FIFO; and ME2 unless all have been down at once: then nobody enters before all are
 * back. A wrong suspicion, as in a partition, lets two in. 2(N − 1) messages per start.
 */
import { tick } from "../../../core/clocks.ts";
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { boolean, natural, nullable } from "../../../core/shape.ts";
import { exclude } from "../../node-set.ts";
import { flag, type OptionsOf, optionTable } from "../../options.ts";
import { mutexProperties } from "../family/workload.ts";
import { consider, orderedEntries, type RicartAgrawala, ricartAgrawala } from "./ricart-agrawala.ts";

export type RecoveringRicartAgrawala = {
  state: RicartAgrawala["state"] & {
    /** Whose welcome it waits for, having started. Ascending. */
    unmet: NodeId[];
    /** The time of its hello, which no earlier life has used; 0: it has said none. */
    hello: number;
    /** Whether somebody has welcomed it who knew how far clocks are, since it started. */
    isInformed: boolean;
    /** Whether it asks as soon as it may. */
    wishes: boolean;
  };
  message:
    | RicartAgrawala["message"]
    /** I have started, and know nothing but my journal. */
    | { type: "hello"; time: number }
    /** To the hello of that time, with the request that waits for a reply. `joined`: all that have entered so far did so with lower stamps. */
    | { type: "welcome"; to: number; time: number; wanted: number | null; joined: boolean };
  command: RicartAgrawala["command"];
  event: RicartAgrawala["event"];
  /** With `rejoins`. */
  record: { type: "asked"; time: number };
};

const recoveringOptions = optionTable("ricart-agrawala", {
  rejoins: flag(false, "whether a node hears from all others before its first request, and journals its requests"),
});

export type RecoveringRicartAgrawalaOptions = OptionsOf<typeof recoveringOptions>;

type State = RecoveringRicartAgrawala["state"];
type Ctx = Context<RecoveringRicartAgrawala>;

/** All that the book's node sends and says, this one may. */
const asBook = (ctx: Ctx): Context<RicartAgrawala> => ctx as unknown as Context<RicartAgrawala>;

export function recoveringRicartAgrawala(
  given?: Partial<RecoveringRicartAgrawalaOptions>,
): Protocol<RecoveringRicartAgrawala> {
  const { rejoins } = recoveringOptions.settle(given);
  const { init, receive, command, shapes, ...book } = ricartAgrawala();

  function enter(state: State, ctx: Ctx): void {
    if (rejoins) ctx.compact([{ type: "asked", time: tick(state.clock) }]); // With which it asks in this step.
    command.enter(state, { type: "enter" }, asBook(ctx));
  }

  /** Somebody has been heard of, or is suspected. */
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
        if (!state.unmet.includes(from)) receive.request(state, from, message, asBook(ctx)); // Otherwise its welcome says so again.
      },
      reply(state, from, message, ctx) {
        if (!state.unmet.includes(from)) receive.reply(state, from, message, asBook(ctx)); // Otherwise it is to an earlier life.
      },
      hello(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        exclude(state.unmet, from); // What else it could have told it has forgotten.
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
        // Its own hello has come meanwhile: so has the request, by itself, and one reply is enough.
        if (state.unmet.includes(from) && wanted !== null) consider(from, wanted, state, asBook(ctx));
        exclude(state.unmet, from);
        enterIfWished(state, ctx);
      },
    },
    command: {
      exit: (state, exit, ctx) => command.exit(state, exit, asBook(ctx)),
      restore: (state, restoration, ctx) => command.restore(state, restoration, asBook(ctx)),
      enter(state, _command, ctx) {
        if (state.section.is !== "released") return; // It asks already, or is inside.
        if (hasJoined(state)) enter(state, ctx);
        else state.wishes = true;
      },
      suspect(state, suspicion, ctx) {
        command.suspect(state, suspicion, asBook(ctx));
        enterIfWished(state, ctx);
      },
    },
    // Otherwise it keeps no journal, and needs none.
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

/** The journals of all together know of every entry; so does a node that has joined. */
const hasJoined = ({ unmet, isInformed, suspected }: State): boolean =>
  unmet.length === 0 || (isInformed && unmet.every((node) => suspected.includes(node)));
