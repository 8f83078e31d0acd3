/**
 * The cost of an agreement: messages, the delay until the proposer learns the decision, durable writes, and tolerated
 * crashes. The message formulas are the algorithms' own `costs`. Every message takes one unit of time.
 */
import type { NodeId, Tagged, Vocabulary } from "../../src/core/protocol.ts";
import { byzantineQuorum, majority } from "../../src/core/quorums.ts";
import { cheapPaxos } from "../../src/protocols/consensus/cheap-paxos/cheap-paxos.ts";
import { fastPaxos } from "../../src/protocols/consensus/fast-paxos/fast-paxos.ts";
import { generalizedPaxos } from "../../src/protocols/consensus/generalized-paxos/generalized-paxos.ts";
import { multiPaxos } from "../../src/protocols/consensus/multi-paxos/multi-paxos.ts";
import { pbft } from "../../src/protocols/consensus/pbft/pbft.ts";
import { raft } from "../../src/protocols/consensus/raft/raft.ts";
import { twoPhaseCommit } from "../../src/protocols/consensus/two-phase-commit/two-phase-commit.ts";
import { contexts, withContext } from "../../src/protocols/contexts.ts";
import { type AnyProtocol, paxos } from "../../src/protocols/index.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { type Cost, costOf, declaredFormula, exactly, type Formula, formula, range } from "./cost.ts";
import { roundsCosts } from "./rounds.ts";

export interface Agreement {
  readonly name: string;
  readonly make: () => AnyProtocol;
  /** The case in the algorithm's `costs` that describes one undisturbed agreement. */
  readonly cost: string;
  /** The formula for this case. */
  readonly messages: string;
  /** Returns the command for one node, which is the leader if there is one. */
  readonly propose: (node: NodeId) => Tagged;
  /** How long the system runs before the command; 0 if it needs no preparation. */
  readonly settle: number;
  /** The types of messages that are not part of an agreement. */
  readonly besides: readonly string[];
  readonly delays: Formula;
  readonly writes: Formula;
  readonly tolerated: Formula;
}

const logCommand = (node: NodeId): Tagged =>
  ({ type: "propose", command: { client: node, sequence: 1, operation: "append a" } }) as Tagged;
/** Returns the formula for `times` writes per node. */
const each = (times: number): Formula => formula(times === 1 ? "N" : `${times}N`, (n) => times * n);
const minority = formula("⌊(N − 1) / 2⌋", (n) => n - majority(n));

const SETTLED = 5_000;
/** Longer than all timeouts that follow a crash. */
const AFTER_CRASHES = 60_000;

export const agreements: readonly Agreement[] = [
  {
    name: "paxos",
    make: () => paxos(),
    cost: "one uncontended proposal",
    messages: "(N − 1)(N + 3)",
    propose: (node) => ({ type: "propose", value: `from ${node}` }) as Tagged,
    settle: 0,
    besides: [],
    delays: exactly(4),
    writes: each(3),
    tolerated: minority,
  },
  {
    name: "multi-paxos",
    make: () => multiPaxos({ announces: false }),
    cost: "one command issued by the leader",
    messages: "2(N − 1)",
    propose: logCommand,
    settle: SETTLED,
    besides: ["heartbeat", "confirm"],
    delays: exactly(2),
    writes: each(1),
    tolerated: minority,
  },
  {
    name: "cheap-paxos",
    make: () => cheapPaxos({ announces: false }),
    cost: "one command issued by the leader, including decision notices",
    messages: "2⌊N / 2⌋",
    propose: logCommand,
    settle: SETTLED,
    besides: ["heartbeat", "confirm"],
    delays: exactly(2),
    writes: { formula: "⌊N / 2⌋ + 1", expected: majority },
    tolerated: minority,
  },
  {
    name: "fast-paxos",
    make: () => fastPaxos(),
    cost: "one command, no collision",
    messages: "(N − 1)(N + 1)",
    propose: logCommand,
    settle: SETTLED,
    besides: ["heartbeat"],
    delays: exactly(2),
    writes: each(2),
    tolerated: minority,
  },
  {
    name: "generalized-paxos",
    make: () => generalizedPaxos(),
    cost: "one command without a collision",
    messages: "(N − 1)(N + 1)",
    propose: logCommand,
    settle: SETTLED,
    besides: ["heartbeat"],
    delays: exactly(2),
    writes: each(1),
    tolerated: minority,
  },
  {
    name: "raft",
    make: () => raft(),
    cost: "one batch of entries",
    messages: "2(N − 1)",
    propose: logCommand,
    settle: SETTLED,
    besides: ["heartbeat", "heartbeatAnswered"],
    delays: exactly(2),
    writes: each(1),
    tolerated: minority,
  },
  {
    name: "pbft",
    make: () => pbft(),
    cost: "one batch, replicas only",
    messages: "2N(N − 1)",
    propose: logCommand,
    settle: SETTLED,
    besides: [],
    delays: { formula: "3 (for N ≥ 4)", expected: (n) => (n < 4 ? 2 : 3) },
    // With fewer than four replicas, none of them may be Byzantine, and a backup's own prepare is enough, so it writes
    // only once.
    writes: { formula: "2N (for N ≥ 4)", expected: (n) => (n < 4 ? n + 1 : 2 * n) },
    tolerated: { formula: "N − ⌈(N + f + 1) / 2⌉", expected: (n) => n - byzantineQuorum(n) },
  },
  {
    name: "two-phase-commit",
    make: () => twoPhaseCommit(),
    cost: "one commit, with its acknowledgements",
    messages: "4(N − 1)",
    propose: () => ({ type: "propose", transactions: 1 }) as Tagged,
    settle: 0,
    besides: [],
    delays: exactly(2),
    writes: { formula: "2N + 1", expected: (n) => 2 * n + 1 },
    tolerated: exactly(0),
  },
];

interface Run {
  readonly sim: Simulation<Vocabulary>;
  /** The node that received the command. */
  readonly proposer: NodeId;
  readonly messages: () => number;
  readonly writes: () => number;
  /** The time from the command until the proposer learned the decision, or null if it did not learn it. */
  readonly decidedAfter: () => number | null;
}

/** Sends a command to one node once all nodes are idle and `crashes` of the others have crashed. */
function run({ make, propose, settle, besides }: Agreement, nodes: number, crashes = 0): Run {
  const ids = range(0, nodes - 1);
  const journalled = { writes: 0 };
  let leader: NodeId | null = null;
  let askedAt = Number.POSITIVE_INFINITY;
  let decidedAt: number | null = null;
  const sim = simulation<Vocabulary>({
    protocol: counting({ ...make(), properties: [] }, journalled),
    nodes: ids,
    seed: 1,
    delayMs: 1,
    onEvent(at, node, emitted) {
      const event = emitted as Tagged & { leader?: NodeId; value?: unknown };
      if (event.type === "led" && event.leader === node) leader = node;
      if (event.type === "decided" && event.value !== "abort" && at >= askedAt && node === (leader ?? 0))
        decidedAt ??= at;
    },
  });
  for (const node of ids) settle === 0 ? sim.wake(node) : sim.start(node);
  sim.run(settle);
  const proposer = leader ?? 0;
  for (const node of ids.filter((id) => id !== proposer).slice(0, crashes)) sim.crash(node);
  const sent = (): number =>
    Object.entries(sim.messages.byType).reduce((sum, [type, count]) => sum + (besides.includes(type) ? 0 : count), 0);
  const [before, written] = [sent(), journalled.writes];
  askedAt = sim.now;
  sim.command(proposer, propose(proposer) as never);
  return {
    sim,
    proposer,
    messages: () => sent() - before,
    writes: () => journalled.writes - written,
    decidedAfter: () => (decidedAt === null ? null : decidedAt - askedAt),
  };
}

/** Longer than any of the agreement's messages is in flight. */
const DONE_WITHIN = 20;

function undisturbed(agreement: Agreement, nodes: number): Run {
  const done = run(agreement, nodes);
  done.sim.run(done.sim.now + DONE_WITHIN);
  return done;
}

/** Returns the maximum number of crashes that still allows the proposer to learn a decision. */
function toleratedBy(agreement: Agreement, nodes: number): number {
  for (let crashes = 1; crashes < nodes; crashes++) {
    const { sim, decidedAfter, proposer } = run(agreement, nodes, crashes);
    for (const until = sim.now + AFTER_CRASHES; sim.now < until && decidedAfter() === null && sim.step(until); );
    if (decidedAfter() === null || !sim.world.alive.includes(proposer)) return crashes - 1;
  }
  return nodes - 1;
}

/** Counts the steps that persist something. Each is one durable write. */
function counting(protocol: AnyProtocol, count: { writes: number }): AnyProtocol {
  let hasWritten = false;
  const noting = contexts((ctx) => ({
    persist(record) {
      hasWritten = true;
      ctx.persist(record);
    },
    compact(records) {
      hasWritten = true;
      ctx.compact(records);
    },
  }));
  return withContext(protocol, noting, () => {
    if (hasWritten) count.writes += 1;
    hasWritten = false;
  }) as AnyProtocol;
}

export function costsOf(agreement: Agreement): Cost[] {
  const { name, make, cost: when, delays, writes, tolerated } = agreement;
  const cost = costOf(name);
  const messages = declaredFormula(make(), when, agreement.messages);
  const after = (n: number): number => undisturbed(agreement, n).decidedAfter() ?? Number.NaN;
  return [
    cost(when, "messages", messages, (n) => undisturbed(agreement, n).messages(), 64),
    cost("until the proposer knows", "message times", delays, after, 64),
    cost("all nodes together", "durable writes", writes, (n) => undisturbed(agreement, n).writes(), 64),
    cost("tolerated, the proposer alive", "crashes", tolerated, (n) => toleratedBy(agreement, n), 13),
  ];
}

export const consensusCosts: readonly Cost[] = [...agreements.flatMap(costsOf), ...roundsCosts];
