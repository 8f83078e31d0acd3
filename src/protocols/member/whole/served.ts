/**
 * What a member that serves knows of a lock that it has put away, and when it may do so: the part of a member's `ServedLocks` and of
 * what it tells names (`src/cluster/services/served-locks.ts`, `instances.ts`).
 */
import type { Context, Protocol } from "../../../core/protocol.ts";
import { boolean, natural } from "../../../core/shape.ts";

export type Served = {
  state: {
    /** The highest epoch that this member has heard of. */
    epoch: number;
    /** In which it serves; null while it does not. */
    servesIn: number | null;
    /** The highest that it has given, or been given, under a name that it has put away since. */
    token: number;
    /** Whether the program has the name in use, and whether the lock has something to do; the highest epoch that the lock has heard of. */
    isWanted: boolean;
    isQuiet: boolean;
    lockEpoch: number;
    isUsed: boolean;
  };
  command:
    | { type: "elected"; leader: number; epoch: number }
    | { type: "deposed"; epoch: number }
    /** The lock has begun. */
    | { type: "open" }
    | { type: "putAway"; token: number }
    | { type: "stands"; isQuiet: boolean; epoch: number }
    | { type: "use" }
    | { type: "rest" };
  event: { type: "resumes"; token: number; servedMs: number } | { type: "uses" } | { type: "rests" };
};

type State = Served["state"];
type Ctx = Context<Served>;

/** Longer than any lease. */
const LONG_MS = 1_000_000;

/** @param isTimed whether leases run out: then this member may have served for longer than any lasts. */
export function served(isTimed: boolean): Protocol<Served> {
  const times = isTimed ? [0, LONG_MS] : [0];

  /** A lock that has heard of a server which this member does not know yet could, opened anew, turn to the one before. */
  function look(state: State, ctx: Ctx): void {
    const isUsed = state.isWanted || !state.isQuiet || state.lockEpoch > state.epoch;
    if (isUsed === state.isUsed) return;
    state.isUsed = isUsed;
    ctx.emit({ type: isUsed ? "uses" : "rests" });
  }

  return {
    name: "served",
    init: () => ({
      epoch: 0,
      servesIn: null,
      token: 0,
      isWanted: false,
      isQuiet: true,
      lockEpoch: 0,
      isUsed: false,
    }),
    command: {
      elected(state, { leader, epoch }, ctx) {
        state.epoch = Math.max(state.epoch, epoch);
        state.servesIn = leader === ctx.self ? epoch : null;
        look(state, ctx);
      },
      deposed(state) {
        state.servesIn = null;
      },
      open({ servesIn, token }, _command, ctx) {
        if (servesIn !== null) ctx.emit({ type: "resumes", token, servedMs: ctx.choose("served", times) });
      },
      putAway(state, { token }) {
        state.token = Math.max(state.token, token);
      },
      stands(state, { isQuiet, epoch }, ctx) {
        Object.assign(state, { isQuiet, lockEpoch: epoch });
        look(state, ctx);
      },
      use(state, _command, ctx) {
        state.isWanted = true;
        look(state, ctx);
      },
      rest(state, _command, ctx) {
        state.isWanted = false;
        look(state, ctx);
      },
    },
    shapes: {
      command: {
        elected: { leader: natural, epoch: natural },
        deposed: { epoch: natural },
        open: {},
        putAway: { token: natural },
        stands: { isQuiet: boolean, epoch: natural },
        use: {},
        rest: {},
      },
    },
    source: "served locks of join()",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ servesIn }) => ({ role: servesIn === null ? "not serving" : "serving" }),
  };
}
