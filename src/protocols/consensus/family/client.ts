/**
 * The client of a replicated log. Every node has one. It has at most one command in progress, which it retries with the
 * same number until its own replica has applied it. The command is journaled, so a crash neither loses nor repeats it.
 */
import type { Context, NodeId, Protocol, RequestId } from "../../../core/protocol.ts";
import { natural, nullable, oneOf, real, text } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable } from "../../options.ts";
import { type MachineKind, machineKinds, stateMachines } from "./machine.ts";
import { operationShape, resultShape } from "./replicated-log.ts";

/** Vocabulary of the client of a replicated log. */
export type LogClient = {
  state: {
    /** The number of times this node has started. It distinguishes current reads from those before a restart. */
    life: number;
    /** The number of commands requested so far, including the one in progress. */
    sequence: number;
    /** The number of reads since the last start. */
    reads: number;
    underWay: Asked | null;
    /** Requests that are waiting for the one in progress. */
    queue: Wanted[];
    /** The number of workload commands still to be requested. */
    left: number;
  };
  timer: "retry";
  command: /** Requests this many more workload commands, one after another. */
    | { type: "use"; commands: number }
    /** A request from the application. The client replies once it has been applied. */
    | { type: "execute"; request: RequestId; operation: string }
    /** Commands from the state machine. */
    | { type: "answered"; sequence: number; result: string; index: number }
    | { type: "queried"; read: number; result: string }
    /** Commands from the log. */
    | { type: "readable"; read: number };
  event:
    | {
        type: "asked";
        client: NodeId;
        sequence: number;
        operation: string;
      } /** For a log that serves reads itself. */
    | { type: "reading"; read: number }
    | { type: "query"; read: number; operation: string }
    /** The command has been applied at this index. */
    | { type: "acknowledged"; sequence: number; index: number };
  record:
    | { type: "life"; life: number; sequence: number; operation: string | null }
    | { type: "asked"; operation: string };
  reply: { type: "result"; result: string } | { type: "refused"; reason: string };
};

/** A request that has not been proposed yet. `request` is null if it is from the workload or from before a restart. */
interface Wanted {
  operation: string;
  request: RequestId | null;
}
type Asked = Wanted & { isRead: boolean };

const logClientOptions = optionTable("client", {
  retryMs: option(
    real,
    1_000,
    "a command is proposed again after a random time between this and twice this; 0 means never",
    {
      min: 0,
    },
  ),
  reads: flag(false, "whether the log serves reads directly; otherwise reads are proposed as commands"),
  kind: option<MachineKind>(oneOf(...machineKinds), "log", "the state machine that the client uses"),
});

/** Options for `logClient()`. */
export type LogClientOptions = OptionsOf<typeof logClientOptions>;

/** The maximum number of requests that wait for the one in progress. */
const MAX_WAITING = 10_000;
/** The maximum number of reads between restarts. A read's number is `life * MAX_READS` plus a counter. */
const MAX_READS = 2 ** 32;

type State = LogClient["state"];
type Ctx = Context<LogClient>;

/**
 * Creates the client of a replicated log, which is one part of each node. @throws UsageError `bad-option` if an option
 * is unknown or out of range.
 */
export function logClient(given?: Partial<LogClientOptions>): Protocol<LogClient> {
  const { retryMs, reads, kind } = logClientOptions.settle(given);
  const { isRead, sample } = stateMachines[kind];

  /** Starts the next request from the queue or the workload. */
  function next(state: State, ctx: Ctx): void {
    if (state.underWay !== null) return;
    const wanted = state.queue.shift() ?? workload(state, ctx);
    if (wanted === null) return;
    state.underWay = { ...wanted, isRead: reads && isRead(wanted.operation) };
    if (!state.underWay.isRead) {
      state.sequence += 1;
      ctx.persist({ type: "asked", operation: wanted.operation });
    }
    ask(state, state.underWay, ctx);
  }

  function workload(state: State, ctx: Ctx): Wanted | null {
    if (state.left === 0) return null;
    state.left -= 1;
    return { operation: sample(ctx.self, state.sequence + 1), request: null };
  }

  /**
   * Proposes a command or starts a read. Each attempt at a read has a new number, because the answer to an earlier
   * attempt may be older than this request.
   */
  function ask(state: State, { operation, isRead }: Asked, ctx: Ctx): void {
    if (retryMs > 0) ctx.setTimer("retry", [retryMs, 2 * retryMs]);
    if (!isRead) return ctx.emit({ type: "asked", client: ctx.self, sequence: state.sequence, operation });
    state.reads += 1;
    ctx.emit({ type: "reading", read: readNumber(state) });
  }

  function finish(state: State, { request }: Asked, result: string, ctx: Ctx): void {
    state.underWay = null;
    ctx.cancelTimer("retry");
    if (request !== null) ctx.reply(request, { type: "result", result });
    next(state, ctx);
  }

  /** Returns the request in progress, if it is this read. */
  function readUnderWay(state: State, read: number): Asked | null {
    const { underWay } = state;
    return underWay?.isRead && read === readNumber(state) ? underWay : null;
  }

  return {
    name: "client",
    init: () => ({ life: 0, sequence: 0, reads: 0, underWay: null, queue: [], left: 0 }),
    start(state, ctx) {
      state.life += 1;
      const { life, sequence, underWay } = state;
      ctx.compact([{ type: "life", life, sequence, operation: underWay?.operation ?? null }]);
      if (underWay !== null) ask(state, underWay, ctx);
    },
    timeout: {
      retry(state, ctx) {
        if (state.underWay !== null) ask(state, state.underWay, ctx);
      },
    },
    command: {
      use(state, { commands }, ctx) {
        state.left += commands;
        next(state, ctx);
      },
      execute(state, { request, operation }, ctx) {
        if (state.queue.length >= MAX_WAITING)
          return ctx.reply(request, {
            type: "refused",
            reason: `expected at most ${MAX_WAITING} waiting requests; retry later`,
          });
        state.queue.push({ operation, request });
        next(state, ctx);
      },
      answered(state, { sequence, result, index }, ctx) {
        const { underWay } = state;
        // This answers an earlier command.
        if (underWay === null || underWay.isRead || sequence !== state.sequence) return;
        ctx.emit({ type: "acknowledged", sequence, index });
        finish(state, underWay, result, ctx);
      },
      readable(state, { read }, ctx) {
        const asked = readUnderWay(state, read);
        if (asked !== null) ctx.emit({ type: "query", read, operation: asked.operation });
      },
      queried(state, { read, result }, ctx) {
        const asked = readUnderWay(state, read);
        if (asked !== null) finish(state, asked, result, ctx);
      },
    },
    replay: {
      life(state, { life, sequence, operation }) {
        state.life = life;
        state.sequence = sequence;
        state.underWay = operation === null ? null : { operation, request: null, isRead: false };
      },
      asked(state, { operation }) {
        state.sequence += 1;
        state.underWay = { operation, request: null, isRead: false };
      },
    },
    ...declarations,
  };
}

const readNumber = ({ life, reads }: State): number => life * MAX_READS + reads;

const declarations: Pick<Protocol<LogClient>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view"> = {
  shapes: {
    command: {
      use: { commands: natural },
      execute: { request: natural, operation: operationShape },
      answered: { sequence: natural, result: resultShape, index: natural },
      queried: { read: natural, result: resultShape },
      readable: { read: natural },
    },
    record: {
      life: { life: natural, sequence: natural, operation: nullable(operationShape) },
      asked: { operation: operationShape },
    },
    reply: { result: { result: resultShape }, refused: { reason: text(1_000) } },
  },
  source: "Ongaro & Ousterhout 2014, §8",
  assumes: [],
  properties: [],
  costs: [],
  view: ({ underWay }) => ({ role: underWay === null ? "idle" : "waiting" }),
};
