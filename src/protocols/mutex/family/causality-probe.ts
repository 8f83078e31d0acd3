/**
 * The causality probe: in addition to running the algorithm, a node that requests to enter notifies all other nodes.
 * One request can therefore happen before another without any of the algorithm's own messages, which is the case that
 * ME3 is about. Coulouris et al. §15.2: "if one request to enter the critical section happened-before another, then
 * entry to the critical section is granted in that order".
 */
import { tick } from "../../../core/clocks.ts";
import type { NodeId, Property, Protocol, StateOf } from "../../../core/protocol.ts";
import { list, natural, struct } from "../../../core/shape.ts";
import type { AnyMaker } from "../../system.ts";
import type { Mutex, Section } from "./workload.ts";

/** The number of known requests from each node, in ascending order of node. Nodes without requests are omitted. */
type Requests = { node: NodeId; count: number }[];

interface Heard {
  /** All requests that this node knows of, including its own. */
  heard: Requests;
  /** The requests that this node knew of when it made its last request. */
  known: Requests;
}

type Told = { type: "told"; time: number; heard: Requests };

const countOf = (requests: Requests, of: NodeId): number => requests.find(({ node }) => node === of)?.count ?? 0;

/** Returns all requests that are in either list. */
function merged(a: Requests, b: Requests): Requests {
  const nodes = [...new Set([...a, ...b].map(({ node }) => node))].sort((p, q) => p - q);
  return nodes.map((node) => ({ node, count: Math.max(countOf(a, node), countOf(b, node)) }));
}

/** Adds the probe to an algorithm. If the algorithm has a Lamport clock, it also counts the probe's messages. */
export function causalityProbe<M extends Mutex, O extends object>(
  mutex: (options?: O) => Protocol<M>,
): (options?: O) => Protocol<M> {
  return (options) => {
    const plain = mutex(options) as unknown as Protocol<Plain>;
    const { enter } = plain.command;
    const probing: Protocol<Probing> = {
      ...plain,
      init: (self, peers) => ({ ...plain.init(self, peers), heard: [], known: [] }),
      receive: {
        ...plain.receive,
        told(state, _from, { time, heard }) {
          if (state.clock !== undefined) state.clock = tick(state.clock, time);
          state.heard = merged(state.heard, heard);
        },
      },
      command: {
        ...plain.command,
        enter(state, command, ctx) {
          if (sectionOf(state) === "released") {
            state.known = state.heard;
            const own = { node: ctx.self, count: countOf(state.heard, ctx.self) + 1 };
            state.heard = merged(state.heard, [own]);
          }
          enter(state, command, ctx);
          ctx.broadcast({ type: "told", time: state.clock ?? 0, heard: state.heard });
        },
      },
      shapes: { ...plain.shapes, message: { ...plain.shapes.message, told: { time: natural, heard: requests } } },
      properties: [...(plain.properties as readonly Property<Probing>[]), inOrder],
    };
    return probing as unknown as Protocol<M>;
  };
}

/** Creates a registry variant that adds the probe to an algorithm. */
export const probed = (mutex: AnyMaker) => ({
  summary:
    "a requesting node also informs all other nodes outside the algorithm, to show whether entry is granted in happened-before order",
  algorithm: causalityProbe(mutex as never),
});

const requests = list(struct<Requests[number]>({ node: natural, count: natural }), 10_000);

/** The part of a mutual exclusion algorithm that the probe relies on. */
type Plain = { state: { section: Section | { is: Section }; clock?: number }; command: { type: "enter" } };
type Probing = { state: StateOf<Plain> & Heard; message: Told; command: { type: "enter" } };

const sectionOf = ({ section }: StateOf<Plain>): Section => (typeof section === "string" ? section : section.is);

const inOrder: Property<Probing> = {
  name: "ME3 happened-before",
  claim: "no node is inside that, when it requested entry, knew of a request that is still waiting",
  when: "always",
  holds({ alive, state }) {
    const isWaiting = (node: NodeId): boolean => sectionOf(state(node)) === "wanted";
    const knewOf = (inside: NodeId, waiting: NodeId): boolean =>
      countOf(state(inside).known, waiting) >= countOf(state(waiting).heard, waiting);
    return alive.every(
      (inside) => sectionOf(state(inside)) !== "held" || !alive.some((node) => isWaiting(node) && knewOf(inside, node)),
    );
  },
};
