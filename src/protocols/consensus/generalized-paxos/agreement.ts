/** What the order of Generalized Paxos promises: not one order for all commands, but one for those that interfere. */
import type { NodeId, Property, World } from "../../../core/protocol.ts";
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import type { History } from "./histories.ts";
import { type Interferes, interference } from "./interference.ts";
import type { GeneralizedPaxos } from "./vocabulary.ts";

/** Of a node's last commands. */
const REMEMBERED = 32;

/** What a node was told in its last life and in this one: after a restart it may learn anew, in another order. */
interface Told {
  readonly before: History;
  readonly now: History;
  /** The place that it was told of last: places grow within a life. */
  readonly index: number;
}

const nothing: Told = { before: [], now: [], index: 0 };

function after(told: Told, { type, command, index = 0 }: { type: string; command?: Command; index?: number }): Told {
  if (type === "installed") return { before: told.now, now: [], index };
  if (type !== "decided" || command === undefined) return told;
  if (index <= told.index) return { before: told.now, now: [command], index };
  return { ...told, now: [...told.now, command].slice(-REMEMBERED), index };
}

/** Whether those that both have and that interfere stand in the same order. */
function agree(a: History, b: History, interferes: Interferes): boolean {
  const places = a.map((command) => b.findIndex((other) => isSameCommand(other, command)));
  return places.every(
    (place, at) =>
      place < 0 ||
      places.every(
        (other, before) =>
          before >= at || other < place || other < 0 || !interferes(a[before] as Command, a[at] as Command),
      ),
  );
}

function allAgree(orders: readonly History[], interferes: Interferes): boolean {
  return orders.every((a, at) => orders.every((b, other) => other <= at || agree(a, b, interferes)));
}

const ordersOf = ({ nodes, history }: Pick<World<object>, "nodes" | "history">): History[] =>
  nodes.flatMap((node: NodeId) => {
    const { before, now } = history<Told>(node);
    return before.length === 0 ? [now] : [before, now];
  });

export const agreement = (interferes: Interferes): Property<GeneralizedPaxos> => ({
  name: "agreement",
  claim: "all nodes, those that have crashed since among them, learn the commands that interfere in the same order",
  when: "always",
  history: { empty: nothing, after: (told, event) => after(told as Told, event) },
  holds: (world) => allAgree(ordersOf(world), interferes),
});

export const checkpoints: Property<GeneralizedPaxos> = {
  name: "checkpoints",
  claim: "nodes that are past the same checkpoint have learnt as many commands before it",
  when: "always",
  holds({ alive, state }) {
    const bases = new Map<number, number>();
    return alive.every((node) => {
      const { era, base } = state(node);
      const known = bases.get(era) ?? base;
      bases.set(era, known);
      return known === base;
    });
  },
};

type States = { machine: { sessions: Record<NodeId, { sequence: number }> }; log: GeneralizedPaxos["state"] };
type Happened = { type: string; body: { type: string; command?: Command; sequence?: number; index?: number } };
type Acknowledged = { readonly sequence: number; readonly index: number };

/** What stands in the place of one order for all, and of what follows from it for places. */
export const clientOrders: readonly Property<never>[] = [
  {
    name: "agreement",
    claim: "all nodes, those that have crashed since among them, learn the commands on each key in the same order",
    when: "always",
    history: {
      empty: nothing,
      after: (told: Told, { type, body }: Happened) => (type === "log" ? after(told, body) : told),
    },
    holds: (world: World<States>) => allAgree(ordersOf(world), interference("by-key")),
  },
  {
    name: "durability",
    claim: "what a client was told is applied, every node has applied that is past the checkpoint after it",
    when: "always",
    history: {
      empty: { sequence: 0, index: 0 },
      after: (before: Acknowledged, { type, body }: Happened): Acknowledged =>
        type === "client" && body.type === "acknowledged"
          ? { sequence: body.sequence ?? 0, index: body.index ?? 0 }
          : before,
    },
    holds: ({ alive, nodes, state, history }: World<States>) =>
      nodes.every((client) => {
        const { sequence, index } = history<Acknowledged>(client);
        const hasIt = (node: NodeId): boolean => (state(node).machine.sessions[client]?.sequence ?? 0) >= sequence;
        return sequence === 0 || alive.every((node) => state(node).log.base < index || hasIt(node));
      }),
  },
] as unknown as readonly Property<never>[];
