/**
 * The program at a node that has names: now and then it wants what runs under a name, in one of the ways in which that may be run,
 * enters, stays inside for a while and leaves. It stands for what a driver has beside names: programs, and a journal with what the
 * node runs, which is kept over a crash.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { boolean, list, natural, real, text } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable, whole } from "../../options.ts";
import type { WireTable } from "../../system.ts";
import type { Forgotten } from "./vocabulary.ts";

/** The only one that they use. */
export const NAME = "report";

export type Program = {
  state: {
    /** It has the name in use while it waits or is inside. */
    doing: "outside" | "waiting" | "inside";
    /** How often it wants the name yet. */
    left: number;
    /** How it would have it run, until it has it or is refused. */
    wanted: string | null;
    /** How its node runs it. */
    runs: string | null;
    isEstablished: boolean;
  };
  timer: "begin" | "end";
  command:
    | { type: "begin" }
    /** From names: another runs it so; another runs it, and not as this node does. */
    | { type: "consider"; setting: string; from: NodeId }
    | { type: "compare"; setting: string; from: NodeId }
    | { type: "ran"; setting: string }
    | { type: "established" }
    | { type: "gone" }
    /** From what runs under the name. */
    | { type: "entered"; token: number }
    | { type: "lost" };
  event:
    | { type: "started" }
    | { type: "resumes"; setting: string; isEstablished: boolean }
    | { type: "wants"; setting: string }
    | { type: "accepts"; setting: string; from: NodeId }
    | { type: "refuses"; setting: string; from: NodeId }
    | { type: "uses" }
    | { type: "rests" }
    | { type: "needed" }
    | { type: "finished" };
  record: { type: "runs"; setting: string; isEstablished: boolean } | { type: "forgot" };
};

const programOptions = optionTable("workload", {
  uses: whole(1, "how often each node uses the name"),
  settings: option(list(text(100), 10), ["one"], "the settings that a program chooses from"),
  restMs: option(real, 2_000, "the longest time between two uses"),
  useMs: option(real, 500, "the longest time that a use lasts"),
});

export type ProgramOptions = OptionsOf<typeof programOptions>;

type State = Program["state"];
type Ctx = Context<Program>;

export function program(given?: Partial<ProgramOptions>): Protocol<Program> {
  const options = programOptions.settle(given);

  function keep({ runs, isEstablished }: State, ctx: Ctx): void {
    if (runs === null) ctx.compact([{ type: "forgot" }]);
    else ctx.compact([{ type: "runs", setting: runs, isEstablished }]);
  }

  function rest(state: State, ctx: Ctx): void {
    if (state.left > 0) ctx.setTimer("begin", [1, options.restMs]);
  }

  /** What it wanted is run, in one way or another. */
  function use(state: State, ctx: Ctx): void {
    const { wanted } = state;
    if (wanted === null) return;
    state.wanted = null;
    if (wanted !== state.runs) return rest(state, ctx); // It is in use otherwise.
    state.doing = "waiting";
    ctx.emit({ type: "uses" });
    ctx.emit({ type: "needed" });
  }

  /** It has left, or lost what it had. */
  function stop(state: State, ctx: Ctx): void {
    if (state.doing === "outside") return;
    state.doing = "outside";
    ctx.cancelTimer("end");
    ctx.emit({ type: "rests" });
    rest(state, ctx);
  }

  return {
    name: "workload",
    init: () => ({ doing: "outside", left: options.uses, wanted: null, runs: null, isEstablished: false }),
    start(state, ctx) {
      ctx.emit({ type: "started" });
      const { runs: setting, isEstablished } = state;
      if (setting !== null) ctx.emit({ type: "resumes", setting, isEstablished });
      rest(state, ctx);
    },
    timeout: {
      begin(state, ctx) {
        state.left -= 1;
        state.wanted = ctx.choose("setting", options.settings);
        ctx.emit({ type: "wants", setting: state.wanted });
      },
      end(state, ctx) {
        ctx.emit({ type: "finished" });
        stop(state, ctx);
      },
    },
    command: {
      begin(state, _command, ctx) {
        if (state.runs !== null) use(state, ctx); // Otherwise it is about to be run.
      },
      consider: (_state, { setting, from }, ctx) => ctx.emit({ type: "accepts", setting, from }),
      compare: (_state, { setting, from }, ctx) => ctx.emit({ type: "refuses", setting, from }),
      ran(state, { setting }, ctx) {
        state.runs = setting;
        keep(state, ctx);
        use(state, ctx);
      },
      established(state, _command, ctx) {
        state.isEstablished = true;
        keep(state, ctx);
      },
      gone(state, _command, ctx) {
        Object.assign(state, { runs: null, isEstablished: false });
        keep(state, ctx);
        stop(state, ctx);
      },
      entered(state, _command, ctx) {
        if (state.doing !== "waiting") return;
        state.doing = "inside";
        ctx.setTimer("end", [1, options.useMs]);
      },
      lost(state, _command, ctx) {
        if (state.doing === "inside") stop(state, ctx);
      },
    },
    replay: {
      runs: (state, { setting, isEstablished }) => void Object.assign(state, { runs: setting, isEstablished }),
      forgot: (state) => void Object.assign(state, { runs: null, isEstablished: false }),
    },
    shapes: {
      command: {
        begin: {},
        consider: { setting: text(100), from: natural },
        compare: { setting: text(100), from: natural },
        ran: { setting: text(100) },
        established: {},
        gone: {},
        entered: { token: natural },
        lost: {},
      },
      record: { runs: { setting: text(100), isEstablished: boolean }, forgot: {} },
    },
    source: "programs, and a journal of what is run",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ doing }) => ({ role: doing }),
  };
}

/**
 * Of the program, which is the part `workload`, with names and with what runs under the name.
 */
export function programWires(instance: string, forgotten: Forgotten): WireTable {
  const run = (setting: string, isEstablished: boolean, by: NodeId | null) =>
    ({ type: "run", name: NAME, setting, forgotten, isEstablished, by }) as const;
  return {
    workload: {
      resumes: ({ setting, isEstablished }, give) => give("names", run(setting, isEstablished, null)),
      wants({ setting }, give) {
        give("names", run(setting, false, null));
        give("workload", { type: "begin" });
      },
      accepts: ({ setting, from }, give) => give("names", run(setting, false, from)),
      refuses: ({ setting, from }, give) =>
        give("names", { type: "refuse", name: NAME, setting, why: "it is run otherwise", to: from }),
      uses: (_event, give) => give("names", { type: "use", name: NAME }),
      rests: (_event, give) => give("names", { type: "rest", name: NAME }),
      needed: (_event, give) => give(instance, { type: "enter" }),
      finished: (_event, give) => give(instance, { type: "exit" }),
    },
    [instance]: {
      entered: ({ token }, give) => give("workload", { type: "entered", token }),
      lost: (_event, give) => give("workload", { type: "lost" }),
      arrived: ({ from, word }, give) => give("names", { type: "arrived", name: NAME, from, word }),
      early: ({ from }, give) => give("names", { type: "inquire", name: NAME, of: from }),
    },
  };
}
