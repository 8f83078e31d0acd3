/** What every replicated log promises to the clients of its state machine. Histories see what crashed nodes have applied, too. */
import type { NodeId, Property, World } from "../../../core/protocol.ts";
import type { LogClient } from "./client.ts";
import type { Machine } from "./machine.ts";

type States = { client: LogClient["state"]; machine: Machine["state"] };
type Body = { type: string; sequence?: number; index?: number; count?: number; digest?: number };
type Happened = { type: string; body: Body };

/** Number of recent commands kept per node. It covers the overlap between nodes that are not far apart. */
const REMEMBERED = 32;

interface Application {
  /** How many commands the node had applied, this one included. */
  readonly count: number;
  /** The command's place in the log. */
  readonly index: number;
  /** Of all commands up to this one, in their order. */
  readonly digest: number;
}

/** The last commands that a node applied, in all its lives; ascending by place. */
type Applied = readonly Application[];

/** A digest that no application has: the node contradicted itself. */
const CONTRADICTION = -1;

/** Two nodes that apply the same order have the same command as their n-th, at the same place, after the same commands. */
const contradict = (a: Application, b: Application): boolean =>
  (a.count === b.count || a.index === b.index) && (a.count !== b.count || a.index !== b.index || a.digest !== b.digest);

const agreement = {
  name: "agreement",
  claim: "all nodes, those that have crashed since among them, apply the same commands in the same order",
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

/** How many commands the client of a node has asked for. */
const integrity = {
  name: "integrity",
  claim: "what a node has applied for a client, that client has asked for",
  when: "always",
  history: {
    empty: 0,
    after: (before: number, { type, body }: Happened): number =>
      type === "client" && body.type === "asked" ? Math.max(before, body.sequence ?? 0) : before,
  },
  // A client that lies may have asked for anything.
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
  claim: "what a client was told is applied, every node has applied that has come as far",
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
  claim: "a command that a client has asked for is applied in the end",
  when: "leadsTo",
  given: ({ state }: World<States>, node: NodeId): boolean => state(node).client.underWay !== null,
  holds: ({ state }: World<States>, node: NodeId): boolean => state(node).client.underWay === null,
} as const;

/** @param orders stand in the place of one order for all and of what follows from it for places, where the log promises less. */
export const logProperties = (orders: readonly Property<never>[]): readonly Property<never>[] =>
  [...(orders.length === 0 ? [agreement, durability] : orders), integrity, termination] as readonly Property<never>[];
