/**
 * Systems built on a replicated log, with a client and a replica of the state machine at every node. The simulator, the
 * checker and real processes run the same system.
 */
import type { Assembly, Wires } from "../../../core/assemble.ts";
import type { NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { withFixed } from "../../options.ts";
import { composed, joined, type System } from "../../system.ts";
import { type LogClient, type LogClientOptions, logClient } from "./client.ts";
import { type Machine, type MachineOptions, machine } from "./machine.ts";
import type { ReplicatedLog } from "./replicated-log.ts";

type States = { client: LogClient["state"]; machine: Machine["state"] };
type Body = { type: string; sequence?: number; index?: number; count?: number; digest?: number };
type Happened = { type: string; body: Body };

/** The number of recent commands kept per node. Nodes that are not far apart have some of these in common. */
const REMEMBERED = 32;

interface Application {
  /** The number of commands that the node has applied, including this one. */
  readonly count: number;
  /** The command's index in the log. */
  readonly index: number;
  /** The digest of all commands up to this one, in order. */
  readonly digest: number;
}

/** The last commands that a node applied, in ascending order of index. Includes commands from before crashes. */
type Applied = readonly Application[];

/** The digest that marks a node that contradicted itself. No application has it. */
const CONTRADICTION = -1;

/**
 * Returns whether two applications are inconsistent. With one total order, the nth command is the same at all nodes, at
 * the same index and with the same digest.
 */
const contradict = (a: Application, b: Application): boolean =>
  (a.count === b.count || a.index === b.index) && (a.count !== b.count || a.index !== b.index || a.digest !== b.digest);

const agreement = {
  name: "agreement",
  claim: "all nodes, including crashed ones, apply the same commands in the same order",
  when: "always",
  history: {
    empty: [] as Applied,
    after(before: Applied, { type, body }: Happened): Applied {
      if (type !== "machine" || body.type !== "applied") return before;
      const { index = 0, count = 0, digest = 0 } = body;
      const now = { index, count, digest };
      // A restarted node applies commands again. The result must match its earlier one.
      if (before.some((earlier) => contradict(earlier, now))) return [{ ...now, digest: CONTRADICTION }];
      if (before.some((earlier) => earlier.index === index)) return before;
      return [...before, now].sort((a, b) => a.index - b.index).slice(-REMEMBERED);
    },
  },
  holds({ nodes, history }: World<States>): boolean {
    const byCount = new Map<number, Application>();
    const byIndex = new Map<number, Application>();
    for (const node of nodes)
      for (const each of history<Applied>(node)) {
        const others = [byCount.get(each.count), byIndex.get(each.index)];
        if (each.digest === CONTRADICTION) return false;
        if (others.some((other) => other !== undefined && contradict(each, other))) return false;
        byCount.set(each.count, each);
        byIndex.set(each.index, each);
      }
    return true;
  },
} as const;

/** The integrity property. Its history is the number of commands that the node's client has requested. */
const integrity = {
  name: "integrity",
  claim: "every command that a node applies for a client was requested by that client",
  when: "always",
  history: {
    empty: 0,
    after: (before: number, { type, body }: Happened): number =>
      type === "client" && body.type === "asked" ? Math.max(before, body.sequence ?? 0) : before,
  },
  // A Byzantine client may have requested anything.
  holds: ({ alive, nodes, state, history }: World<States>): boolean =>
    alive.every((node) =>
      Object.entries(state(node).machine.sessions).every(
        ([client, { sequence }]) => !nodes.includes(Number(client)) || sequence <= history<number>(Number(client)),
      ),
    ),
} as const;

interface Acknowledged {
  readonly sequence: number;
  readonly index: number;
}

const durability = {
  name: "durability",
  claim: "a command acknowledged to a client is applied by every node whose log has reached its index",
  when: "always",
  history: {
    empty: { sequence: 0, index: 0 } as Acknowledged,
    after: (before: Acknowledged, { type, body }: Happened): Acknowledged =>
      type === "client" && body.type === "acknowledged"
        ? { sequence: body.sequence ?? 0, index: body.index ?? 0 }
        : before,
  },
  holds: ({ alive, nodes, state, history }: World<States>): boolean =>
    nodes.every((client) => {
      const { sequence, index } = history<Acknowledged>(client);
      const hasIt = (node: NodeId): boolean => (state(node).machine.sessions[client]?.sequence ?? 0) >= sequence;
      return sequence === 0 || alive.every((node) => state(node).machine.index < index || hasIt(node));
    }),
} as const;

const termination = {
  name: "termination",
  claim: "every command that a client requests is eventually applied",
  when: "leadsTo",
  given: ({ state }: World<States>, node: NodeId): boolean => state(node).client.underWay !== null,
  holds: ({ state }: World<States>, node: NodeId): boolean => state(node).client.underWay === null,
} as const;

/**
 * Returns the properties of a log with clients. @param orders the properties that replace `agreement` and `durability`
 * for a log without a single total order
 */
const logProperties = (orders: readonly Property<never>[]): readonly Property<never>[] =>
  [...(orders.length === 0 ? [agreement, durability] : orders), integrity, termination] as readonly Property<never>[];

type Replica<L extends ReplicatedLog> = { client: LogClient; machine: Machine; log: L };
/** Vocabulary of a node with a client, a state machine and the log in between. */
export type ReplicatedSystem<L extends ReplicatedLog> = Assembly<Replica<L>>;

/** Options for a replicated system, by part. */
export interface ReplicatedSystemOptions<O> {
  /** Options for the client. Its other options are derived from the log and the machine. */
  client?: Partial<Pick<LogClientOptions, "retryMs">>;
  /** Options for the state machine. */
  machine?: Partial<MachineOptions>;
  /** Options for the log. */
  log?: O;
}

const wires: Wires<Replica<ReplicatedLog>> = {
  client: {
    asked: ({ client, sequence, operation }, give) =>
      give("log", { type: "propose", command: { client, sequence, operation } }),
    reading: ({ read }, give) => give("log", { type: "read", read }),
    query: ({ read, operation }, give) => give("machine", { type: "query", read, operation }),
  },
  log: {
    decided: ({ index, command }, give) => give("machine", { type: "decided", index, command }),
    installed: ({ index, snapshot }, give) => give("machine", { type: "installed", index, snapshot }),
    readable: ({ read }, give) => give("client", { type: "readable", read }),
    checkpoint: ({ index }, give) => give("machine", { type: "save", index }),
    answered: ({ sequence, result, index }, give) => give("client", { type: "answered", sequence, result, index }),
  },
  machine: {
    answered: ({ sequence, result, index }, give) => give("client", { type: "answered", sequence, result, index }),
    queried: ({ read, result }, give) => give("client", { type: "queried", read, result }),
    replied: ({ client, sequence, result, index }, give) =>
      give("log", { type: "reply", client, sequence, result, index }),
    saved: ({ index, snapshot }, give) => give("log", { type: "compact", index, snapshot }),
  },
};

/**
 * Returns a system with a client and a state machine at every node. @param orders the ordering properties of a log
 * without a single total order
 */
export function withLogClients<L extends ReplicatedLog, O extends object>(
  { parts, wires: ofLog, algorithm }: System,
  orders: readonly Property<never>[],
) {
  const whole = { parts: { client: logClient, machine, ...parts }, wires: joined(wires, ofLog), algorithm };
  const make = composed<Replica<L>, { client?: object; machine?: object; log?: O }>(whole);
  const log = parts[algorithm] as (options?: O) => Protocol<ReplicatedLog>;
  return (options: ReplicatedSystemOptions<O> = {}): Protocol<ReplicatedSystem<L>> => {
    const kind = options.machine?.kind;
    const { command } = log(options.log);
    const client = {
      ...options.client,
      reads: Object.hasOwn(command, "read"),
      ...(kind === undefined ? {} : { kind }),
    };
    const machine = { ...options.machine, repliesToAll: Object.hasOwn(command, "reply") };
    const system = withFixed(["client.reads", "client.kind", "machine.repliesToAll"], () =>
      make({ ...options, client, machine }),
    );
    const promised = logProperties(orders);
    // Properties that include the clients replace the log's properties with the same name.
    const others = system.properties.filter(({ name }) => !promised.some((property) => property.name === name));
    return { ...system, properties: [...others, ...promised] } as never;
  };
}

/** Creates a replicated log with a client and a state machine at every node. */
export const replicated = <L extends ReplicatedLog, O extends object>(
  log: (options?: O) => Protocol<L>,
  options?: ReplicatedSystemOptions<O>,
): Protocol<ReplicatedSystem<L>> => withLogClients<L, O>({ parts: { log }, wires: {}, algorithm: "log" }, [])(options);
