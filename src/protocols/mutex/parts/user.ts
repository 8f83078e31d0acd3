/**
 * Who uses a mutual exclusion: asks to enter so many times, stays inside for a while, leaves, rests. A part like any
 * other, so every driver runs every mutual exclusion with the same users.
 */
import { type Assembly, assemble, type Wires } from "../../../core/assemble.ts";
import type { Context, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { natural, real, struct } from "../../../core/shape.ts";
import { requireParts, requirePositive, settle } from "../../options.ts";

export type MutexUser = {
  state: {
    doing: "idle" | "waiting" | "inside" | "resting";
    /** How many entries it still wants, the one that it waits for or is in included. */
    left: number;
    /** How many times it has been inside. */
    entries: number;
  };
  timer: "stay" | "rest";
  command: /** Enter so many times more. */
    | { type: "use"; entries: number }
    /** From the mutual exclusion. */
    | { type: "entered" };
  event: { type: "needed" } | { type: "finished" };
};

export interface MutexUserOptions {
  /** How long it stays inside. */
  stayMs: number;
  /** How long it rests between two entries. */
  restMs: number;
}

const defaults: MutexUserOptions = { stayMs: 5, restMs: 5 };

const optionShape = struct<MutexUserOptions>({ stayMs: real, restMs: real });

/** What every mutual exclusion offers to whoever uses it. */
export interface Mutex extends Vocabulary {
  command: { type: "enter" } | { type: "exit" };
  event: { type: "entered" } | { type: "exited" };
}

type State = MutexUser["state"];
type Ctx = Context<MutexUser>;

export function mutexUser(given?: Partial<MutexUserOptions>): Protocol<MutexUser> {
  const { stayMs, restMs } = settle(defaults, optionShape, given, "user");
  requirePositive("user.stayMs", stayMs);
  requirePositive("user.restMs", restMs);

  function ask(state: State, ctx: Ctx): void {
    state.doing = "waiting";
    ctx.emit({ type: "needed" });
  }

  return {
    name: "user",
    init: () => ({ doing: "idle", left: 0, entries: 0 }),
    timeout: {
      stay(state, ctx) {
        state.left -= 1;
        state.doing = state.left > 0 ? "resting" : "idle";
        ctx.emit({ type: "finished" });
        if (state.left > 0) ctx.setTimer("rest", restMs);
      },
      rest: ask,
    },
    command: {
      use(state, { entries }, ctx) {
        state.left += entries;
        if (state.doing === "idle" && state.left > 0) ask(state, ctx);
      },
      entered(state, _command, ctx) {
        if (state.doing !== "waiting") return; // It has not asked.
        state.doing = "inside";
        state.entries += 1;
        ctx.setTimer("stay", stayMs);
      },
    },
    shapes: { command: { use: { entries: natural }, entered: {} } },
    source: "Coulouris et al. §15.2: enter(), resourceAccesses(), exit()",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ doing }) => ({ role: doing }),
  };
}

export type UsedMutex<M extends Mutex> = Assembly<{ user: MutexUser; mutex: M }>;

export interface UsedMutexOptions<O> {
  user?: Partial<MutexUserOptions>;
  mutex?: O;
}

/** A mutual exclusion with a user at every node. */
export function usedMutex<M extends Mutex, O extends object>(
  mutex: (options?: O) => Protocol<M>,
  options: UsedMutexOptions<O> = {},
): Protocol<UsedMutex<M>> {
  const parts = { user: mutexUser(options.user), mutex: mutex(options.mutex) };
  const { name } = parts.mutex;
  requireParts(name, options, Object.keys(parts));
  const wires: Wires<{ user: MutexUser; mutex: Mutex }> = {
    user: {
      needed: (_event, give) => give("mutex", { type: "enter" }),
      finished: (_event, give) => give("mutex", { type: "exit" }),
    },
    mutex: { entered: (_event, give) => give("user", { type: "entered" }) },
  };
  return assemble<{ user: MutexUser; mutex: M }>(name, parts, wires, {
    face: "mutex",
  });
}
