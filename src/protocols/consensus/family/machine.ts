/**
 * The replica of a state machine. It applies each decided command once and takes snapshots so that the log can be
 * compacted. It journals nothing: after a restart, the log emits the decided commands again.
 * Schneider, ACM Computing Surveys 1990; sessions as in Ongaro & Ousterhout 2014, §8.
 */
import type { Chunk } from "../../../core/chunk.ts";
import { canonical } from "../../../core/plain.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural, oneOf } from "../../../core/shape.ts";
import { count, flag, type OptionsOf, option, optionTable, whole } from "../../options.ts";
import { type Command, commandShape, operationShape, snapshotOf, snapshotShape, textOf } from "./replicated-log.ts";

// The deterministic state machines for replicated logs: a map, a counter and a log. Their state is plain data, and
// their operations are text.

/** The names of the state machines. */
export const machineKinds = ["log", "map", "counter"] as const;
/** The name of a state machine. */
export type MachineKind = (typeof machineKinds)[number];

/** A deterministic state machine with plain data `D`. Operations and results are text. */
export interface StateMachine<D extends object> {
  /** Returns the data before the first operation. */
  empty(): D;
  /** Applies the operation to the data in place. An unknown operation changes nothing and returns an error message. */
  apply(data: D, operation: string): string;
  /**
   * Returns whether the operation changes nothing. A node may answer such an operation from its own data once the data
   * is known to be up to date.
   */
  isRead(operation: string): boolean;
  /** Returns the operation with this number in a client's workload. */
  sample(client: number, sequence: number): string;
}

const words = (operation: string): string[] => operation.split(" ");
const READ = 100;
const UNKNOWN = "unknown operation";

/**
 * A list of strings. `append TEXT` returns the position of the new string, counted from 1. `read` returns the last 100
 * strings, separated by commas.
 */
const log: StateMachine<{ entries: string[] }> = {
  empty: () => ({ entries: [] }),
  apply(data, operation) {
    const [verb, ...text] = words(operation);
    if (verb === "append") return String(data.entries.push(text.join(" ")));
    return verb === "read" ? data.entries.slice(-READ).join(",") : UNKNOWN;
  },
  isRead: (operation) => operation === "read",
  sample: (client, sequence) => `append ${client}.${sequence}`,
};

/**
 * A map. `put KEY VALUE` and `delete KEY` return the previous value, `get KEY` returns the current one, and `cas KEY
 * OLD NEW` returns `yes` or `no`. A missing value is "".
 */
const map: StateMachine<{ values: Record<string, string> }> = {
  empty: () => ({ values: {} }),
  apply({ values }, operation) {
    const [verb, key = "", ...rest] = words(operation);
    const before = Object.hasOwn(values, key) ? (values[key] as string) : "";
    // The key must become an own property of the object, even if it is a name like `__proto__`.
    const put = (value: string): void => {
      Object.defineProperty(values, key, { value, enumerable: true, configurable: true, writable: true });
    };
    if (verb === "get") return before;
    if (verb === "put") {
      put(rest.join(" "));
      return before;
    }
    if (verb === "delete") {
      delete values[key];
      return before;
    }
    if (verb !== "cas") return UNKNOWN;
    const [old = "", ...next] = rest;
    if (before !== old) return "no";
    put(next.join(" "));
    return "yes";
  },
  isRead: (operation) => words(operation)[0] === "get",
  sample: (client, sequence) => `put k${sequence % 3} ${client}.${sequence}`,
};

/** A counter. `add NUMBER` and `get` return the sum. */
const counter: StateMachine<{ sum: number }> = {
  empty: () => ({ sum: 0 }),
  apply(data, operation) {
    const [verb, by = ""] = words(operation);
    if (verb !== "get" && verb !== "add") return UNKNOWN;
    if (verb === "add" && Number.isSafeInteger(data.sum + Number(by))) data.sum += Number(by);
    return String(data.sum);
  },
  isRead: (operation) => operation === "get",
  sample: () => "add 1",
};

/** The state machines, keyed by name. */
// Only the state machine knows the type of its data. The replica just stores it.
// biome-ignore lint/suspicious/noExplicitAny: see above
export const stateMachines: Readonly<Record<MachineKind, StateMachine<any>>> = { log, map, counter };

/** Vocabulary of the replica of a state machine. */
export type Machine = {
  state: {
    /** The index of the last applied log entry. */
    index: number;
    data: object;
    /** For each client: its last command and the result. */
    sessions: Record<NodeId, Session>;
    /** A digest of all applied commands in order. Equal digests mean equal histories. */
    digest: number;
    /** The number of commands since the last snapshot. */
    unsaved: number;
  };
  command: /** Commands from the log. */
    | { type: "decided"; index: number; command: Command }
    | { type: "installed"; index: number; snapshot: Chunk[] }
    /** From a log that schedules snapshots: take one that covers all commands up to this index. */
    | { type: "save"; index: number }
    /** From the client, once the log has confirmed that this node's data is up to date. */
    | { type: "query"; read: number; operation: string };
  event: /**
   * Emitted once per command, even if it is decided twice. `count` is the number of commands so far, including this
   * one.
   */
    | { type: "applied"; index: number; count: number; digest: number }
    /** Events for this node's own client. */
    | { type: "answered"; sequence: number; result: string; index: number }
    | { type: "queried"; read: number; result: string }
    /** An event for a log that delivers results to clients on other nodes. */
    | { type: "replied"; client: NodeId; sequence: number; result: string; index: number }
    /** Events for the log. */
    | { type: "saved"; index: number; snapshot: Chunk[] };
};

interface Session {
  sequence: number;
  result: string;
}

const machineOptions = optionTable("machine", {
  kind: option<MachineKind>(oneOf(...machineKinds), "log", "the kind of state machine"),
  snapshotEvery: whole(0, "the number of commands between snapshots; 0 disables snapshots"),
  snapshotBytes: count(65_536, "the size of a snapshot chunk, in bytes"),
  repliesToAll: flag(false, "whether the replica also reports the results of commands from other nodes' clients"),
});

/** Options for `machine()`. */
export type MachineOptions = OptionsOf<typeof machineOptions>;

type State = Machine["state"];
type Ctx = Context<Machine>;

/**
 * Creates the replica of a state machine, which applies the decided commands of a log. @throws UsageError `bad-option`
 * if an option is unknown or out of range.
 */
export function machine(given?: Partial<MachineOptions>): Protocol<Machine> {
  const { kind, snapshotEvery, snapshotBytes, repliesToAll } = machineOptions.settle(given);
  const { empty, apply } = stateMachines[kind];

  /**
   * Takes a snapshot. Its keys are in canonical order, so that equal states have equal snapshots. Some logs compare
   * snapshots from different nodes.
   */
  function save(state: State, ctx: Ctx): void {
    const { index, data, sessions, digest } = state;
    state.unsaved = 0;
    ctx.emit({ type: "saved", index, snapshot: snapshotOf(canonical({ data, sessions, digest }), snapshotBytes) });
  }

  /** Delivers a result to the client, at this node or through the log. */
  function answer(state: State, client: NodeId, ctx: Ctx): void {
    const session = state.sessions[client];
    if (session === undefined) return;
    if (client === ctx.self) ctx.emit({ type: "answered", ...session, index: state.index });
    else if (repliesToAll) ctx.emit({ type: "replied", client, ...session, index: state.index });
  }

  return {
    name: "machine",
    init: () => ({ index: 0, data: empty(), sessions: {}, digest: 0, unsaved: 0 }),
    command: {
      decided(state, { index, command }, ctx) {
        const { client, sequence, operation } = command;
        if (index <= state.index) return; // Already applied: logs decide entries again after a restart.
        state.index = index;
        if (sequence > (state.sessions[client]?.sequence ?? 0)) {
          state.sessions[client] = { sequence, result: apply(state.data, operation) };
          state.digest = mixed(state.digest, `${client}.${sequence} ${operation}`);
          ctx.emit({ type: "applied", index, count: applied(state), digest: state.digest });
          state.unsaved += 1;
        }
        answer(state, client, ctx);
        if (snapshotEvery > 0 && state.unsaved >= snapshotEvery) save(state, ctx);
      },
      installed(state, { index, snapshot }, ctx) {
        if (index <= state.index) return; // This replica has already applied all of it.
        Object.assign(state, JSON.parse(textOf(snapshot)), { index, unsaved: 0 });
        for (const client of Object.keys(state.sessions)) answer(state, Number(client), ctx);
      },
      save(state, { index }, ctx) {
        state.index = Math.max(state.index, index);
        save(state, ctx);
      },
      query(state, { read, operation }, ctx) {
        ctx.emit({ type: "queried", read, result: apply(state.data, operation) });
      },
    },
    shapes: {
      command: {
        decided: { index: natural, command: commandShape },
        installed: { index: natural, snapshot: snapshotShape },
        save: { index: natural },
        query: { read: natural, operation: operationShape },
      },
    },
    source: "Schneider, ACM Computing Surveys 1990",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ index }) => ({ role: `applied ${index}` }),
  };
}

/** Returns the number of applied commands, which is the sum of the clients' sequence numbers, which have no gaps. */
const applied = ({ sessions }: State): number =>
  Object.values(sessions).reduce((count, { sequence }) => count + sequence, 0);

/** Returns the FNV-1a hash of the text, seeded with the previous digest. */
function mixed(before: number, text: string): number {
  let hash = (before ^ 0x81_1c_9d_c5) >>> 0;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93) >>> 0;
  return hash;
}
