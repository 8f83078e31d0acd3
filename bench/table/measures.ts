/** How entry, hand-over and bandwidth of a mutual exclusion are measured, alike for all. */
import type { NodeId, Protocol } from "../../src/core/protocol.ts";
import type { Mutex } from "../../src/protocols/mutex/family/workload.ts";
import { costOf, exactly, type Formula } from "./declared.ts";
import type { Cost } from "./figure.ts";
import { range, section } from "./sections.ts";

/** An idle holder passes the token on at once, as far as message times go. */
export const HARDLY = 1e-9;
const WANTING = 9;
const ENTRIES = 3;

/** Nodes at every distance: all of a small ring, some of a large one. */
export const places = (nodes: number): number[] =>
  range(1, nodes - 1).filter((place) => nodes <= 64 || place % 111 === 0 || place === 1 || place === nodes - 1);

/** Who asks first, and who asks while it is inside. */
export type Pair = readonly [holder: NodeId, next: NodeId];

/** For algorithms that come to rest: one node alone, and one that waits for another. */
function entryOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): { messages: number; time: number } {
  return section(mutex(), nodes).enter(nodes - 1);
}

function bandwidthOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): number {
  const used = section(mutex(), nodes);
  used.enter(nodes - 1);
  used.leave(nodes - 1);
  return used.sim.messages.total;
}

function handOverOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number, [holder, next]: Pair) {
  const used = section(mutex(), nodes);
  used.enter(holder);
  used.ask(next);
  return used.handOver(holder, next);
}

/** The mean for each entry when `WANTING` nodes, or all there are, want in again and again. */
export function crowdedOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): number {
  const wanting = Math.min(nodes, WANTING);
  const used = section(mutex(), nodes, { stay: 1, delay: [0.5, 1.5], seed: nodes });
  for (const node of range(0, wanting - 1))
    used.sim.command(node, { type: "workload", body: { type: "use", entries: ENTRIES } } as never);
  used.sim.run();
  return used.sim.messages.total / (wanting * ENTRIES);
}

export const CROWD = `up to ${WANTING} nodes that want in ${ENTRIES} times each`;

interface FormulasAtRest {
  readonly pair: (nodes: number) => Pair;
  readonly entry: Formula;
  readonly handOver: Formula;
  readonly handOverTime: Formula;
  readonly bandwidth: Formula;
}

/** Of algorithms that come to rest. A request and its answer take two message times in all of them. */
export function costsAtRest<M extends Mutex>(
  protocol: string,
  make: () => Protocol<M>,
  { pair, entry, handOver, handOverTime, bandwidth }: FormulasAtRest,
): Cost[] {
  const cost = costOf(protocol);
  const handed = (n: number) => handOverOf(make, n, pair(n));
  return [
    cost("entry", "messages", entry, (n) => entryOf(make, n).messages),
    cost("client delay", "message times", exactly(2), (n) => entryOf(make, n).time),
    cost("hand-over", "messages", handOver, (n) => handed(n).messages),
    cost("hand-over", "message times", handOverTime, (n) => handed(n).time),
    cost("bandwidth", "messages", bandwidth, (n) => bandwidthOf(make, n)),
  ];
}
