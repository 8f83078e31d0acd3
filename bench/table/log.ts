/** What a multicast through the log of the coordination service costs, while nothing goes wrong: from the member that leads it, and from another. */
import type { NodeId } from "../../src/core/protocol.ts";
import { protocolNamed } from "../../src/protocols/index.ts";
import type { LogMulticastSystem } from "../../src/protocols/multicast/log-multicast.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { declaredFormula } from "./declared.ts";
import type { Cost } from "./figure.ts";
import { range } from "./sections.ts";

interface Run {
  /** Of the log, for this message; heartbeats are not among them. */
  readonly messages: number;
  /** From the sending until the last member has delivered. */
  readonly time: number;
  readonly deliveries: number;
}

const protocol = "log-multicast";
/** By then there is a leader, and everybody is in the group. */
const SETTLED = 5_000;
/** Long enough for a message, and nobody's session is renewed meanwhile. */
const SENDING = 10;
const LONG = 600_000;
const OF_AN_ENTRY = ["forward", "appendEntries", "appended", "committed"] as const;
const MAX_NODES = 64;

type Sim = Simulation<LogMulticastSystem>;

const ofEntries = ({ messages }: Sim): number =>
  OF_AN_ENTRY.reduce((sum, type) => sum + (messages.byType[type] ?? 0), 0);

/** @param isOfLeader whether the member that sends leads the log. */
export function sentThroughLog(nodes: number, isOfLeader: boolean): Run {
  const run = { deliveries: 0, time: 0 };
  const { node } = protocolNamed(protocol);
  const sim: Sim = simulation<LogMulticastSystem>({
    protocol: { ...node({ session: { leaseMs: 5 * LONG, renewMs: LONG } }), properties: [] } as never,
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 1,
    onEvent(at, _node, { type, body }) {
      if (type !== "multicast" || body.type !== "delivered") return;
      run.deliveries += 1;
      run.time = at - SETTLED;
    },
  });
  for (const each of range(0, nodes - 1)) sim.start(each);
  sim.run(SETTLED);
  const leads = (each: NodeId): boolean => sim.world.state(each).log.role.is === "leader";
  const sender = range(0, nodes - 1).find((each) => leads(each) === isOfLeader) as NodeId;
  const before = ofEntries(sim);
  sim.command(sender, { type: "multicast", body: { type: "send", payload: "m" } });
  sim.run(SETTLED + SENDING);
  return { ...run, messages: ofEntries(sim) - before };
}

const times = (what: string, count: number, isOfLeader: boolean): Cost => ({
  protocol,
  what,
  unit: "message times",
  formula: `${count}`,
  expected: () => count,
  measure: (n) => sentThroughLog(n, isOfLeader).time,
  maxNodes: MAX_NODES,
});

export const logCosts: readonly Cost[] = [
  {
    protocol,
    what: "a multicast of the leader of the log",
    unit: "messages",
    ...declaredFormula(protocolNamed(protocol).node(), "one multicast of the leader of the log", "3(N − 1)"),
    measure: (n) => sentThroughLog(n, true).messages,
    maxNodes: MAX_NODES,
  },
  times("the same, until all have delivered", 3, true),
  {
    protocol,
    what: "a multicast of another member",
    unit: "messages",
    formula: "3(N − 1) + 1",
    expected: (n) => 3 * (n - 1) + 1,
    measure: (n) => sentThroughLog(n, false).messages,
    maxNodes: MAX_NODES,
  },
  times("the same from another member, until all have delivered", 4, false),
];
