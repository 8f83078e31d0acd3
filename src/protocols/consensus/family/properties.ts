/** What every replicated log promises to the clients of its state machine. Histories see what crashed nodes have applied, too. */
import type { NodeId, Property, World } from "../../../core/protocol.ts";
import type { LogClient } from "./client.ts";
import type { Machine } from "./machine.ts";

type States = { client: LogClient["state"]; machine: Machine["state"] };
type Body = { type: string; sequence?: number; index?: number; digest?: number };
type Happened = { type: string; body: Body };

/** Of a node's last commands, as many as histories of nodes that are not far apart have in common. */
const REMEMBERED = 32;

/** The digest after each of the last commands, by their place in the order; ascending. */
type Applied = readonly { readonly index: number; readonly digest: number }[];

const agreement = {
  name: "agreement",
  claim: "all nodes, those that have crashed since among them, apply the same commands in the same order",
  when: "always",
  history: {
    empty: [] as Applied,
    after(before: Applied, { type, body }: Happened): Applied {
      if (type !== "machine" || body.type !== "applied") return before;
      const { index = 0, digest = 0 } = body;
      // After a restart a node applies anew: what it comes to has to be what it came to before, or other nodes.
      const known = before.find((place) => place.index === index);
      if (known !== undefined) return known.digest === digest ? before : [{ index, digest: -1 }];
      return [...before, { index, digest }].sort((a, b) => a.index - b.index).slice(-REMEMBERED);
    },
  },
  holds({ nodes, history }: World<States>): boolean {
    const digests = new Map<number, number>();
    for (const node of nodes)
      for (const { index, digest } of history<Applied>(node)) {
        if (digest === -1 || (digests.get(index) ?? digest) !== digest) return false;
        digests.set(index, digest);
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
