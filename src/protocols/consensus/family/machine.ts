/**
 * A replica of the state machine. It applies the decided commands, each command of a client once, and takes snapshots
 * so that the log can be compacted. It journals nothing: after a restart the log decides the commands again.
 * Schneider, ACM Computing Surveys 1990; sessions as in Ongaro & Ousterhout 2014, §8.
 */
import type { Chunk } from "../../../core/chunk.ts";
import { canonical } from "../../../core/plain.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural, oneOf } from "../../../core/shape.ts";
import { count, flag, type OptionsOf, option, optionTable, whole } from "../../options.ts";
import { type Command, commandShape, operationShape, snapshotOf, snapshotShape, textOf } from "./replicated-log.ts";

// The deterministic state machines for replicated logs: a map, a counter and a log. Their data is plain, their
// operations are text.

export const machineKinds = ["log", "map", "counter"] as const;
export type MachineKind = (typeof machineKinds)[number];

export interface StateMachine<D extends object> {
  empty(): D;
  /** Applies the operation to the data in place. An unknown operation changes nothing and returns an error text. */
  apply(data: D, operation: string): string;
  /**
   * Whether the operation changes nothing. A node may answer it from its own data once those are known to be up to
   * date.
   */
  isRead(operation: string): boolean;
  /** @returns the workload's operation with this number. */
  sample(client: number, sequence: number): string;
}

const words = (operation: string): string[] => operation.split(" ");
const READ = 100;
const UNKNOWN = "unknown operation";

/** `append TEXT` returns its position, from 1. `read` returns the last 100 texts, separated by commas. */
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
 * `put KEY VALUE` and `delete KEY` return the previous value, `get KEY` the current one, `cas KEY OLD NEW` `yes` or
 * `no`. A missing value is "".
 */
const map: StateMachine<{ values: Record<string, string> }> = {
  empty: () => ({ values: {} }),
  apply({ values }, operation) {
    const [verb, key = "", ...rest] = words(operation);
    const before = Object.hasOwn(values, key) ? (values[key] as string) : "";
    // The key must become an own property of the object, even with a name like `__proto__`.
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

/** `add NUMBER` and `get` return the sum. */
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

// Each state machine knows its own data; its driver only stores them.
// biome-ignore lint/suspicious/noExplicitAny: see above
export const stateMachines: Readonly<Record<MachineKind, StateMachine<any>>> = { log, map, counter };

export type Machine = {
  state: {
    /** The last index of the log that it has applied. */
    index: number;
    data: object;
    /** The last command of each client, and its result. */
    sessions: Record<NodeId, Session>;
    /** A digest of all applied commands in order: equal digests mean equal histories. */
    digest: number;
    /** The number of commands since the last snapshot. */
    unsaved: number;
  };
  command: /** From the log. */
    | { type: "decided"; index: number; command: Command }
    | { type: "installed"; index: number; snapshot: Chunk[] }
    /** From a log that decides itself when snapshots are taken. The snapshot ends with this index. */
    | { type: "save"; index: number }
    /** From the client, once the log has confirmed that this node's data are up to date. */
    | { type: "query"; read: number; operation: string };
  event: /**
   * Emitted once per command, even if it is decided twice. `count` is the number of commands so far, including this
   * one.
   */
    | { type: "applied"; index: number; count: number; digest: number }
    /** To this node's own client. */
    | { type: "answered"; sequence: number; result: string; index: number }
    | { type: "queried"; read: number; result: string }
    /** To a log that delivers results to clients of other nodes. */
    | { type: "replied"; client: NodeId; sequence: number; result: string; index: number }
    /** To the log. */
    | { type: "saved"; index: number; snapshot: Chunk[] };
};

interface Session {
  sequence: number;
  result: string;
}

const machineOptions = optionTable("machine", {
  kind: option<MachineKind>(oneOf(...machineKinds), "log", "the kind of state machine"),
  snapshotEvery: whole(0, "the number of commands between snapshots; 0: no snapshots"),
  snapshotBytes: count(65_536, "the number of bytes in one chunk of a snapshot"),
  repliesToAll: flag(false, "whether it also reports the results of commands from other nodes' clients"),
});

export type MachineOptions = OptionsOf<typeof machineOptions>;

type State = Machine["state"];
type Ctx = Context<Machine>;

export function machine(given?: Partial<MachineOptions>): Protocol<Machine> {
  const { kind, snapshotEvery, snapshotBytes, repliesToAll } = machineOptions.settle(given);
  const { empty, apply } = stateMachines[kind];

  /** The keys are in canonical order, so equal states have equal snapshots: nodes of some logs compare them. */
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
        if (index <= state.index) return; // The log decides it again after a restart.
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
        if (index <= state.index) return; // It has applied all of it already.
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

/** Clients number their commands without gaps, so the sequence numbers add up to the number of commands. */
const applied = ({ sessions }: State): number =>
  Object.values(sessions).reduce((count, { sequence }) => count + sequence, 0);

/** FNV-1a of the text, seeded with the previous digest. */
function mixed(before: number, text: string): number {
  let hash = (before ^ 0x81_1c_9d_c5) >>> 0;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93) >>> 0;
  return hash;
}
