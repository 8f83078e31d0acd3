/**
 * The simplest log, for tests of the layers around it. Node 0 orders all commands, and a node that missed commands
 * fetches them.
 */
import type { Chunk } from "../../../src/core/chunk.ts";
import type { Context, Protocol } from "../../../src/core/protocol.ts";
import { natural } from "../../../src/core/shape.ts";
import {
  type Command,
  commandShape,
  logCommandShapes,
  type ReplicatedLog,
  snapshotShape,
} from "../../../src/protocols/consensus/family/replicated-log.ts";

export type PrimaryLog = {
  /**
   * `index` is the last entry in the snapshot, and `applied` the last entry applied to this node's machine.
   * `isFetching` means that a fetch of missing entries is pending.
   */
  state: { index: number; snapshot: Chunk[]; entries: Command[]; applied: number; isFetching: boolean };
  message:
    | { type: "forward"; command: Command }
    | { type: "fetch" }
    | { type: "entry"; index: number; command: Command }
    | { type: "snapshot"; index: number; snapshot: Chunk[] };
  command: Extract<ReplicatedLog["command"], { type: "propose" | "compact" }>;
  event: Extract<ReplicatedLog["event"], { type: "decided" | "installed" }>;
  record: { type: "entry"; command: Command } | { type: "snapshot"; index: number; snapshot: Chunk[] };
};

const PRIMARY = 0;

type State = PrimaryLog["state"];
type Ctx = Context<PrimaryLog>;

/**
 * @param forgets whether the order is not journaled, so that a restarted primary assigns the same positions to other
 * commands
 */
export function primaryLog({ forgets = false } = {}): Protocol<PrimaryLog> {
  /**
   * Applies a decided command. Ignores it if earlier commands are missing. The node fetches those, and fetches them
   * again when it proposes.
   */
  function decide(state: State, index: number, command: Command, ctx: Ctx): void {
    if (index > state.applied + 1 && !state.isFetching) {
      state.isFetching = true;
      ctx.send(PRIMARY, { type: "fetch" });
    }
    if (index !== state.applied + 1) return;
    state.applied = index;
    state.isFetching = false;
    ctx.emit({ type: "decided", index, command });
  }

  function install(state: State, index: number, snapshot: Chunk[], ctx: Ctx): void {
    if (index <= state.applied) return;
    state.applied = index;
    ctx.emit({ type: "installed", index, snapshot });
  }

  function append(state: State, command: Command, ctx: Ctx): void {
    state.entries.push(command);
    const index = state.index + state.entries.length;
    if (!forgets) ctx.persist({ type: "entry", command });
    ctx.broadcast({ type: "entry", index, command });
    decide(state, index, command, ctx);
  }
  return {
    name: "primary-log",
    init: () => ({ index: 0, snapshot: [], entries: [], applied: 0, isFetching: false }),
    start(state, ctx) {
      if (ctx.self !== PRIMARY) return ctx.send(PRIMARY, { type: "fetch" });
      const { index, snapshot, entries } = state;
      install(state, index, snapshot, ctx);
      for (const [at, command] of entries.entries()) decide(state, index + at + 1, command, ctx);
    },
    receive: {
      forward: (state, _from, { command }, ctx) => append(state, command, ctx),
      fetch({ index, snapshot, entries }, from, _message, ctx) {
        if (index > 0) ctx.send(from, { type: "snapshot", index, snapshot });
        for (const [at, command] of entries.entries())
          ctx.send(from, { type: "entry", index: index + at + 1, command });
      },
      entry: (state, _from, { index, command }, ctx) => decide(state, index, command, ctx),
      snapshot: (state, _from, { index, snapshot }, ctx) => install(state, index, snapshot, ctx),
    },
    command: {
      propose(state, { command }, ctx) {
        if (ctx.self === PRIMARY) return append(state, command, ctx);
        state.isFetching = false;
        ctx.send(PRIMARY, { type: "forward", command });
      },
      compact(state, { index, snapshot }, ctx) {
        if (ctx.self !== PRIMARY || index <= state.index) return;
        state.entries.splice(0, index - state.index);
        Object.assign(state, { index, snapshot });
        if (!forgets)
          ctx.compact([
            { type: "snapshot", index, snapshot },
            ...state.entries.map((command) => ({ type: "entry" as const, command })),
          ]);
      },
    },
    replay: {
      entry: (state, { command }) => void state.entries.push(command),
      snapshot: (state, { index, snapshot }) => void Object.assign(state, { index, snapshot, entries: [] }),
    },
    shapes: {
      message: {
        forward: { command: commandShape },
        fetch: {},
        entry: { index: natural, command: commandShape },
        snapshot: { index: natural, snapshot: snapshotShape },
      },
      command: { propose: logCommandShapes.propose, compact: logCommandShapes.compact },
      record: { entry: { command: commandShape }, snapshot: { index: natural, snapshot: snapshotShape } },
    },
    source: "none",
    assumes: ["links keep their order and lose only messages to or from a crashed node"],
    properties: [],
    costs: [{ when: "a command of the primary", messages: (nodes) => nodes - 1 }],
    view: () => ({ role: "member", leader: PRIMARY }),
  };
}
