/**
 * The cost of a multicast without faults, either in a group with agreed views or through the coordination service's
 * log.
 */
import type { NodeId, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { protocolNamed } from "../../src/protocols/index.ts";
import type { LogMulticastSystem } from "../../src/protocols/multicast/log-multicast.ts";
import {
  flushCausal,
  flushCausalTotal,
  flushFifo,
  flushFifoTotal,
  flushIsis,
} from "../../src/protocols/multicast/parts/flush.ts";
import { viewSynchrony } from "../../src/protocols/multicast/view-synchrony.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { type Cost, costOf, declaredFormula, exactly, type Formula, formula, range } from "./cost.ts";

const MAX_NODES = 64;
/** By this time, all members are in the first view and the agreement on it has ended. */
const VIEW_SETTLED = 10_000;
const AGREEING = ["prepare", "promise", "propose", "accept", "decided"];

/** Starts all nodes, lets them agree on a view, and then makes one of them send a message. */
function sentInView(make: () => unknown, nodes: number) {
  let [datagrams, time, agreement] = [0, 0, 0];
  const sim = simulation<Vocabulary>({
    protocol: { ...(make() as Protocol<Vocabulary>), properties: [] },
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 1,
    onEvent(at, _node, { type }) {
      if (type === "installed") agreement = AGREEING.reduce((sum, each) => sum + (sim.messages.byType[each] ?? 0), 0);
      if (type !== "delivered") return;
      [datagrams, time] = [sim.datagrams, at];
    },
  });
  for (const node of range(0, nodes - 1)) sim.start(node);
  sim.run(VIEW_SETTLED);
  const before = sim.datagrams;
  sim.command(0, { type: "send", payload: "m" } as never);
  sim.run(VIEW_SETTLED + 10);
  return { datagrams: datagrams - before, time: time - VIEW_SETTLED, agreement };
}

function inView(protocol: string, make: () => unknown, datagrams: Formula, times: number): Cost[] {
  const what = "a multicast, until all have delivered";
  const cost = costOf(protocol, MAX_NODES);
  return [
    cost(what, "datagrams", datagrams, (n) => sentInView(make, n).datagrams),
    cost(what, "message times", exactly(times), (n) => sentInView(make, n).time),
  ];
}

/** The message, the others' proposals, which are sent only to the sender, and the agreed number. */
const agreed = formula("1 + (N − 1) + 1", (n) => n + 1);

const LOG = "log-multicast";
/** By this time, there is a leader and all members are in the group. */
const LOG_SETTLED = 5_000;
/** Long enough for a message, but shorter than the time to the next session renewal. */
const SENDING = 10;
const LONG = 600_000;
/** The types of messages that are needed for a log entry, without heartbeats. */
const OF_AN_ENTRY = ["forward", "appendEntries", "appended", "committed"] as const;

/**
 * Sends one message through the log, and waits until the last member has delivered it.
 * @param isOfLeader whether the sender is the leader of the log
 */
export function sentThroughLog(nodes: number, isOfLeader: boolean) {
  const run = { deliveries: 0, time: 0 };
  const { node } = protocolNamed(LOG);
  const sim: Simulation<LogMulticastSystem> = simulation<LogMulticastSystem>({
    protocol: { ...node({ session: { leaseMs: 5 * LONG, renewMs: LONG } }), properties: [] } as never,
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 1,
    onEvent(at, _node, { type, body }) {
      if (type !== "multicast" || body.type !== "delivered") return;
      run.deliveries += 1;
      run.time = at - LOG_SETTLED;
    },
  });
  const sent = (): number => OF_AN_ENTRY.reduce((sum, type) => sum + (sim.messages.byType[type] ?? 0), 0);
  for (const each of range(0, nodes - 1)) sim.start(each);
  sim.run(LOG_SETTLED);
  const leads = (each: NodeId): boolean => sim.world.state(each).log.role.is === "leader";
  const sender = range(0, nodes - 1).find((each) => leads(each) === isOfLeader) as NodeId;
  const before = sent();
  sim.command(sender, { type: "multicast", body: { type: "send", payload: "m" } });
  sim.run(LOG_SETTLED + SENDING);
  return { ...run, messages: sent() - before };
}

function logCosts(): Cost[] {
  const cost = costOf(LOG, MAX_NODES);
  const when = "one multicast by the leader of the log";
  const ofLeader = declaredFormula(protocolNamed(LOG).node(), when, "3(N − 1)");
  const ofOther = formula("3(N − 1) + 1", (n) => 3 * (n - 1) + 1);
  const until = "until all have delivered";
  return [
    cost("a multicast of the leader of the log", "messages", ofLeader, (n) => sentThroughLog(n, true).messages),
    cost(`the same, ${until}`, "message times", exactly(3), (n) => sentThroughLog(n, true).time),
    cost("a multicast of another member", "messages", ofOther, (n) => sentThroughLog(n, false).messages),
    cost(`the same from another member, ${until}`, "message times", exactly(4), (n) => sentThroughLog(n, false).time),
  ];
}

const views = costOf("view-synchrony", MAX_NODES);

export const groupCosts: readonly Cost[] = [
  ...inView("view-synchrony", () => viewSynchrony(), exactly(1), 1),
  views(
    "agreement on the first view",
    "messages",
    formula("3(N − 1)", (n) => 3 * (n - 1)),
    (n) => {
      return sentInView(() => viewSynchrony(), n).agreement;
    },
  ),
  ...inView("fifo, flush", () => flushFifo(), exactly(1), 1),
  ...inView("causal, flush", () => flushCausal(), exactly(1), 1),
  ...inView("isis, flush", () => flushIsis(), agreed, 3),
  ...inView("fifo-total, flush", () => flushFifoTotal(), agreed, 3),
  ...inView("causal-total, flush", () => flushCausalTotal(), agreed, 3),
  ...logCosts(),
];
