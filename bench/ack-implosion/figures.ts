/**
 * What acknowledgements do to a sender: how many come to it for one multicast, how long they queue there, and when it is
 * done with them. Coulouris et al. §15.4.1 calls it ack implosion.
 */
import type { NodeId, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { unwrapped } from "../../src/core/wrapping.ts";
import { basicMulticast } from "../../src/protocols/multicast/basic-multicast.ts";
import { ipMulticast } from "../../src/protocols/multicast/ip-multicast/ip-multicast.ts";
import { reliableMulticast } from "../../src/protocols/multicast/reliable-multicast.ts";
import { simulation } from "../../src/sim/simulation.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";

export interface Figures {
  readonly method: string;
  readonly nodes: number;
  /** For one multicast, at its sender. */
  readonly acknowledgements: number;
  /** How many of them wait at the sender until it has time, at worst. */
  readonly longestQueue: number;
  /** When it is done with the last of them, in message times from the sending; 0 if there is none to wait for. */
  readonly doneAfter: number;
}

export interface Method {
  readonly name: string;
  readonly protocol: (nodes: number) => unknown;
  /** What says that something has been received. Messages that say so beside what they are sent for do not count. */
  readonly acknowledgement: string;
  /** Whether the others multicast too, soon after. */
  readonly allSpeak: boolean;
  /** Every member keeps something of every other, so beyond that a simulation of all of them takes too much. */
  readonly maxNodes: number;
}

export const methods: readonly Method[] = [
  {
    name: "basic-multicast, acknowledged",
    protocol: () => basicMulticast({ acknowledges: true }),
    acknowledgement: "acknowledgement",
    allSpeak: false,
    maxNodes: 10_000,
  },
  {
    name: "reliable-multicast, acknowledged",
    protocol: () => reliableMulticast({ acknowledges: true }),
    acknowledgement: "acknowledgement",
    allSpeak: false,
    maxNodes: 256,
  },
  {
    name: "ip-multicast, the others silent",
    protocol: () => ipMulticast(),
    acknowledgement: "session",
    allSpeak: false,
    maxNodes: 256,
  },
  {
    name: "ip-multicast, all speak",
    protocol: (nodes) => ipMulticast({ ackEvery: 2 * nodes }),
    acknowledgement: "session",
    allSpeak: true,
    maxNodes: 256,
  },
];

const SENDER: NodeId = 0;
/** A message time is a millisecond. Long enough for all acknowledgements, too short for what comes after. */
const ALL_SPEAK_FOR = 4;

/** @param processing how long a node is busy with one message, in message times. */
export function measured(method: Method, nodes: number, processing: number): Figures {
  const arrivals: number[] = [];
  const taken: number[] = [];
  const sim = simulation<Vocabulary>({
    protocol: { ...(method.protocol(nodes) as Protocol<Vocabulary>), properties: [] },
    nodes: Array.from({ length: nodes }, (_, node) => node),
    seed: 1,
    delayMs: 1,
    processingMs: processing,
    trace: note,
  });
  function note(entry: TraceEntry<Vocabulary>): void {
    if (entry.kind !== "send" && entry.kind !== "receive") return;
    if (unwrapped(entry.message).type !== method.acknowledgement) return;
    // A message leaves when its sender is done with the stimulus.
    if (entry.kind === "send" && entry.to === SENDER) arrivals.push(entry.at + processing + 1);
    if (entry.kind === "receive" && entry.node === SENDER) taken.push(entry.at);
  }
  const say = (node: NodeId): void => sim.command(node, { type: "send", payload: "m" } as never);
  for (let node = 0; node < nodes; node++) sim.wake(node);
  say(SENDER);
  if (method.allSpeak) {
    for (let node = 1; node < nodes; node++) {
      sim.run((ALL_SPEAK_FOR * node) / nodes);
      say(node);
    }
    sim.run(ALL_SPEAK_FOR + 1);
  } else sim.run();
  const last = taken.at(-1);
  return {
    method: method.name,
    nodes,
    acknowledgements: taken.length,
    longestQueue: longest(arrivals, taken),
    doneAfter: last === undefined ? 0 : last + processing,
  };
}

/** How many had arrived and were not taken up, at the worst time. */
function longest(arrivals: number[], taken: readonly number[]): number {
  arrivals.sort((a, b) => a - b);
  let [most, gone] = [0, 0];
  for (const [i, at] of arrivals.entries()) {
    while (gone < taken.length && (taken[gone] as number) <= at) gone += 1;
    most = Math.max(most, i + 1 - gone);
  }
  return most;
}
