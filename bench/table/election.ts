/**
 * What an election costs: messages, and turnaround in message times from the call until everybody alive knows the leader.
 * Coulouris et al. §15.3.
 */
import type { NodeId, Protocol, Tagged, Vocabulary } from "../../src/core/protocol.ts";
import { random } from "../../src/core/random.ts";
import { bully } from "../../src/protocols/election/bully/bully.ts";
import { extendedChangRoberts } from "../../src/protocols/election/chang-roberts/extended-chang-roberts.ts";
import { epochBully } from "../../src/protocols/election/epoch-bully/epoch-bully.ts";
import { extendedRing } from "../../src/protocols/election/ring/extended-ring.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { costOf, declaredFormula, exactly } from "./declared.ts";
import type { Cost } from "./figure.ts";
import { range } from "./sections.ts";

type Run = { readonly messages: number; readonly time: number };
type AnyProtocol = Protocol<Vocabulary>;

interface Counting {
  /** The types of messages that count; all of them unless said. */
  readonly counted?: readonly string[];
  /** Where there is no end to it. */
  readonly until?: number;
  /** Who leads before; what that cost does not count. */
  readonly leader?: NodeId;
}

/** Everybody but `down` answers from rest; then the `tasks` are given. The time is that of the last message that counts. */
function elected(
  protocol: unknown,
  nodes: readonly NodeId[],
  down: readonly NodeId[],
  tasks: readonly (readonly [NodeId, object])[],
  { counted, until, leader }: Counting = {},
): Run {
  let last = 0;
  const counts = (type: string): boolean => counted === undefined || counted.includes(type);
  const sim = simulation<Vocabulary>({
    // Properties look at every node after every step; here only messages and times count.
    protocol: { ...(protocol as AnyProtocol), properties: [] },
    nodes,
    seed: 1,
    delayMs: 1,
    trace(entry) {
      if (entry.kind === "receive" && counts((entry.message as Tagged).type)) last = entry.at;
    },
  });
  for (const node of nodes) if (!down.includes(node)) sim.wake(node);
  const sent = (): number =>
    Object.entries(sim.messages.byType).reduce((sum, [type, number]) => sum + (counts(type) ? number : 0), 0);
  if (leader !== undefined) {
    sim.command(leader, { type: "call" } as never);
    sim.run();
  }
  const [begun, before] = [sim.now, sent()];
  for (const [node, command] of tasks) sim.command(node, command as never);
  sim.run(until);
  return { messages: sent() - before, time: last - begun };
}

const call = (node: NodeId) => [node, { type: "call" }] as const;
const resign = (node: NodeId) => [node, { type: "resign" }] as const;

/** T_max and T_process in message times; T = 2·T_max + T_process. */
const T_PROCESS = 1;
const T = 2 + T_PROCESS;

function bullyCosts(): Cost[] {
  const cost = costOf("bully");
  const make = () => bully({ maxDelayMs: 1, processMs: T_PROCESS });
  const best = (n: number): Run =>
    elected(make(), range(0, n - 1), [n - 1], [[n - 2, { type: "suspect", node: n - 1 }], call(n - 2)]);
  const worst = (n: number): Run => elected(make(), range(0, n - 1), [n - 1], [call(0)]);
  return [
    cost(
      "the second-highest notices",
      "messages",
      declaredFormula(make(), "the second-highest notices the crash of the highest", "N − 2"),
      (n) => best(n).messages,
    ),
    cost("the second-highest notices: turnaround", "message times", exactly(1), (n) => best(n).time),
    cost(
      "the lowest calls, the highest has crashed",
      "messages",
      declaredFormula(make(), "the lowest calls, the highest has crashed", "N² − N − 1"),
      (n) => worst(n).messages,
      64,
    ),
    cost(
      "the lowest calls, the highest has crashed: turnaround",
      "message times",
      { formula: "1 + T + 1, T = 2·T_max + T_process", expected: () => T + 2 },
      (n) => worst(n).time,
      64,
    ),
  ];
}

const harmonic = (n: number): number => range(1, n).reduce((sum, k) => sum + 1 / k, 0);

function shuffled(nodes: number, source: { bits(): number }): NodeId[] {
  const drawn = range(0, nodes - 1).map((node) => ({ node, at: source.bits() }));
  return drawn.sort((a, b) => a.at - b.at).map(({ node }) => node);
}

const RINGS = 150;

/** The mean over so many random rings, each in both directions. */
function meanOverRings(nodes: number): number {
  const rings = Math.max(RINGS, Math.ceil(10_000 / nodes));
  const source = random(nodes);
  let sum = 0;
  for (let done = 0; done < rings; done++) {
    const ring = shuffled(nodes, source);
    for (const each of [ring, ring.toReversed()])
      sum += elected(extendedChangRoberts({ ring: each }), each, [], each.map(call)).messages;
  }
  return sum / (2 * rings);
}

function changRobertsCosts(): Cost[] {
  const cost = costOf("chang-roberts");
  const descending = (n: number): NodeId[] => range(0, n - 1).reverse();
  const on = (ring: readonly NodeId[], callers: readonly NodeId[]): Run =>
    elected(extendedChangRoberts({ ring }), ring, [], callers.map(call));
  return [
    cost(
      "the highest calls",
      "messages",
      declaredFormula(extendedChangRoberts(), "the highest calls", "2N"),
      (n) => on(range(0, n - 1), [n - 1]).messages,
    ),
    cost(
      "the highest calls: turnaround",
      "message times",
      { formula: "2N", expected: (n) => 2 * n },
      (n) => on(range(0, n - 1), [n - 1]).time,
    ),
    cost(
      "the node after the highest calls",
      "messages",
      declaredFormula(extendedChangRoberts(), "the node after the highest calls", "3N − 1"),
      (n) => on(range(0, n - 1), [0]).messages,
    ),
    cost(
      "the node after the highest calls: turnaround",
      "message times",
      { formula: "3N − 1", expected: (n) => 3 * n - 1 },
      (n) => on(range(0, n - 1), [0]).time,
    ),
    cost(
      "all call, ids descend",
      "messages",
      declaredFormula(extendedChangRoberts(), "all call, ids descend clockwise", "N(N + 1)/2 + N"),
      (n) => on(descending(n), descending(n)).messages,
    ),
    cost(
      "all call, random rings: mean",
      "messages",
      {
        formula: "N·H(N) + N, within 5 %, within 1 % for N = 1,000",
        expected: (n) => {
          const mean = n * harmonic(n) + n;
          const share = n >= 1_000 ? 0.01 : 0.05;
          return [(1 - share) * mean, (1 + share) * mean];
        },
      },
      meanOverRings,
    ),
  ];
}

function resignationCosts(): Cost[] {
  const cost = costOf("chang-roberts");
  const resigned = (ring: readonly NodeId[]): Run => {
    const leader = ring.length - 1;
    return elected(extendedChangRoberts({ ring }), ring, [], [resign(leader)], { leader });
  };
  return [
    cost(
      "the leader resigns, its successor is next",
      "messages",
      declaredFormula(extendedChangRoberts(), "the leader resigns, its successor is next on the ring", "2N + 1"),
      (n) => resigned(range(0, n - 1).reverse()).messages,
    ),
    cost(
      "the leader resigns, its successor is last",
      "messages",
      declaredFormula(extendedChangRoberts(), "the leader resigns, its successor is last on the ring", "3N − 1"),
      (n) => resigned(range(0, n - 1)).messages,
    ),
  ];
}

function ringCosts(): Cost[] {
  const cost = costOf("ring");
  const counted = ["election", "coordinator"]; // As the books count: without receipts.
  const make = () => extendedRing({ maxDelayMs: 1, processMs: 1 });
  const on = (nodes: number, callers: readonly NodeId[]): Run =>
    elected(make(), range(0, nodes - 1), [], callers.map(call), { counted });
  const past = (nodes: number): Run => elected(make(), range(0, nodes), [nodes], [call(0)], { counted });
  const maxNodes = 64;
  return [
    cost(
      "one calls",
      "messages",
      declaredFormula(make(), "one calls, without receipts", "2N"),
      (n) => on(n, [0]).messages,
      maxNodes,
    ),
    cost(
      "one calls: turnaround",
      "message times",
      { formula: "2N", expected: (n) => 2 * n },
      (n) => on(n, [0]).time,
      maxNodes,
    ),
    cost(
      "two call at once",
      "messages",
      declaredFormula(make(), "two call at once, without receipts", "4N"),
      (n) => on(n, [0, 1]).messages,
      maxNodes,
    ),
    cost(
      "one calls, one more has crashed",
      "messages",
      { formula: "2N + 1", expected: (n) => 2 * n + 1 },
      (n) => past(n).messages,
      maxNodes,
    ),
    cost(
      "the leader resigns",
      "messages",
      declaredFormula(make(), "the leader resigns, without receipts", "2N"),
      (n) => elected(make(), range(0, n - 1), [], [resign(n - 1)], { counted, leader: n - 1 }).messages,
      maxNodes,
    ),
  ];
}

function epochBullyCosts(): Cost[] {
  const cost = costOf("epoch-bully");
  const once = (nodes: number, until: number): Run =>
    elected(epochBully(), range(0, nodes - 1), [], [call(nodes - 1)], { until });
  return [
    cost(
      "an undisturbed election",
      "messages",
      declaredFormula(epochBully(), "one undisturbed election", "6(N − 1)"),
      (n) => once(n, 50).messages,
    ),
    cost(
      "an undisturbed election: turnaround",
      "message times",
      { formula: "5, and 1 to confirm", expected: () => 6 },
      (n) => once(n, 50).time,
    ),
    cost(
      "a round of renewals",
      "messages",
      declaredFormula(epochBully(), "one round of renewals", "2(N − 1)"),
      (n) => once(n, 150).messages - once(n, 50).messages,
    ),
  ];
}

export const electionCosts: readonly Cost[] = [
  ...bullyCosts(),
  ...changRobertsCosts(),
  ...resignationCosts(),
  ...ringCosts(),
  ...epochBullyCosts(),
];
