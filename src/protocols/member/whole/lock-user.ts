/**
 * The program at a whole member: now and then it wants a lock by its name, in one of the ways in which it may be run, enters, stays
 * inside for a while and leaves. What its member runs is kept over a crash, as a member keeps it that has a journal.
 */
import type { Context, Protocol } from "../../../core/protocol.ts";
import { boolean, list, natural, real, struct, text } from "../../../core/shape.ts";
import { settle } from "../../options.ts";

export type LockUser = {
  state: {
    doing: "outside" | "waiting" | "inside";
    /** Whether it has the lock in use: it waits or is inside. */
    isUsing: boolean;
    /** How often it wants the lock yet. */
    left: number;
    /** How it would have it run, until it has it or is refused. */
    wanted: string | null;
    /** How its member runs it. */
    runs: string | null;
    isEstablished: boolean;
  };
  timer: "begin" | "end";
  command:
    | { type: "begin" }
    /** From names. */
    | { type: "ran"; setting: string }
    | { type: "established" }
    | { type: "gone" }
    /** From the lock. */
    | { type: "entered"; token: number }
    | { type: "lost" };
  event:
    | { type: "started" }
    | { type: "resumes"; setting: string; isEstablished: boolean }
    | { type: "wants"; setting: string }
    | { type: "uses" }
    | { type: "rests" }
    | { type: "needed" }
    | { type: "finished" };
  record: { type: "runs"; setting: string; isEstablished: boolean } | { type: "forgot" };
};

export interface LockUserOptions {
  /** How often each node enters. */
  uses: number;
  /** How a program would have the lock run: one of these. */
  settings: string[];
  /** Between two uses, and how long one lasts: up to so long. */
  restMs: number;
  useMs: number;
}

const defaults: LockUserOptions = { uses: 1, settings: ["one"], restMs: 2_000, useMs: 500 };

const optionShape = struct<LockUserOptions>({
  uses: natural,
  settings: list(text(100), 10),
  restMs: real,
  useMs: real,
});

type State = LockUser["state"];
type Ctx = Context<LockUser>;

export function lockUser(given?: Partial<LockUserOptions>): Protocol<LockUser> {
  const options = settle(defaults, optionShape, given, "workload");

  function keep({ runs, isEstablished }: State, ctx: Ctx): void {
    if (runs === null) ctx.compact([{ type: "forgot" }]);
    else ctx.compact([{ type: "runs", setting: runs, isEstablished }]);
  }

  function rest(state: State, ctx: Ctx): void {
    if (state.left > 0) ctx.setTimer("begin", [1, options.restMs]);
  }

  /** It has left, or lost what it had. */
  function stop(state: State, ctx: Ctx): void {
    if (!state.isUsing) return;
    Object.assign(state, { doing: "outside", isUsing: false });
    ctx.cancelTimer("end");
    ctx.emit({ type: "rests" });
    rest(state, ctx);
  }

  return {
    name: "workload",
    init: () => ({
      doing: "outside",
      isUsing: false,
      left: options.uses,
      wanted: null,
      runs: null,
      isEstablished: false,
    }),
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
        const { wanted } = state;
        state.wanted = null;
        if (wanted === null || wanted !== state.runs) return rest(state, ctx); // It is in use otherwise.
        Object.assign(state, { doing: "waiting", isUsing: true });
        ctx.emit({ type: "uses" });
        ctx.emit({ type: "needed" });
      },
      entered(state, _command, ctx) {
        if (state.doing !== "waiting") return;
        state.doing = "inside";
        ctx.setTimer("end", [1, options.useMs]);
      },
      lost(state, _command, ctx) {
        if (state.doing === "inside") stop(state, ctx);
      },
      ran(state, { setting }, ctx) {
        state.runs = setting;
        keep(state, ctx);
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
    },
    replay: {
      runs: (state, { setting, isEstablished }) => void Object.assign(state, { runs: setting, isEstablished }),
      forgot: (state) => void Object.assign(state, { runs: null, isEstablished: false }),
    },
    shapes: {
      command: {
        begin: {},
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
