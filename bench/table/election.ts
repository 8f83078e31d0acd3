/**
 * The cost of an election: messages, and the turnaround time, in message times, from the call until every live node
 * knows the leader. Coulouris et al. §15.3.
 */
import type { NodeId, Protocol, Tagged, Vocabulary } from "../../src/core/protocol.ts";
import { random } from "../../src/core/random.ts";
import { bully } from "../../src/protocols/election/bully/bully.ts";
import { extendedChangRoberts } from "../../src/protocols/election/chang-roberts/extended-chang-roberts.ts";
import { epochBully } from "../../src/protocols/election/epoch-bully/epoch-bully.ts";
import { extendedRing } from "../../src/protocols/election/ring/extended-ring.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { type Cost, costOf, declaredFormula, exactly, type Formula, formula, range } from "./cost.ts";

interface Run {
  readonly messages: number;
  readonly time: number;
}

interface Counting {
  /** Nodes that are not started. */
  readonly down?: readonly NodeId[];
  /** The types of messages that are counted. Default: all. */
  readonly counted?: readonly string[];
  /** When the run ends, for an algorithm that never becomes idle. */
  readonly until?: number;
  /** The previous leader, whose election is not counted. */
  readonly leader?: NodeId;
}

type Task = readonly [NodeId, object];

/** Runs an election: all nodes are idle, then get the `tasks`. The time is when the last counted message arrives. */
function elected(
  protocol: unknown,
  nodes: readonly NodeId[],
  tasks: readonly Task[],
  { down = [], counted, until, leader }: Counting = {},
): Run {
  let last = 0;
  const counts = (type: string): boolean => counted === undefined || counted.includes(type);
  const sim = simulation<Vocabulary>({
    // Remove the properties, which would inspect every node after every step, since only messages and times are
    // measured.
    protocol: { ...(protocol as Protocol<Vocabulary>), properties: [] },
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

const call = (node: NodeId): Task => [node, { type: "call" }];
const resign = (node: NodeId): Task => [node, { type: "resign" }];
const ascending = (n: number): NodeId[] => range(0, n - 1);
const descending = (n: number): NodeId[] => ascending(n).reverse();

/** T_max and T_process in message times; T = 2·T_max + T_process. */
const T_PROCESS = 1;
const T = 2 + T_PROCESS;

function bullyCosts(): Cost[] {
  const cost = costOf("bully");
  const make = () => bully({ maxDelayMs: 1, processMs: T_PROCESS });
  const declared = (when: string, text: string): Formula => declaredFormula(make(), when, text);
  const best = (n: number): Run =>
    elected(make(), ascending(n), [[n - 2, { type: "suspect", node: n - 1 }], call(n - 2)], { down: [n - 1] });
  const worst = (n: number): Run => elected(make(), ascending(n), [call(0)], { down: [n - 1] });
  const second = "the second-highest node detects the crash";
  const lowest = "the lowest node starts the election after the highest crashed";
  const turnaround = formula("1 + T + 1, T = 2·T_max + T_process", () => T + 2);
  return [
    cost(second, "messages", declared(`${second} of the highest`, "N − 2"), (n) => best(n).messages),
    cost(`${second}: turnaround`, "message times", exactly(1), (n) => best(n).time),
    cost(lowest, "messages", declared(lowest, "N² − N − 1"), (n) => worst(n).messages, 64),
    cost(`${lowest}: turnaround`, "message times", turnaround, (n) => worst(n).time, 64),
  ];
}

const harmonic = (n: number): number => range(1, n).reduce((sum, k) => sum + 1 / k, 0);

function shuffled(nodes: number, source: { bits(): number }): NodeId[] {
  const drawn = ascending(nodes).map((node) => ({ node, at: source.bits() }));
  return drawn.sort((a, b) => a.at - b.at).map(({ node }) => node);
}

const RINGS = 150;

const onRing = (ring: readonly NodeId[], callers: readonly NodeId[]): Run =>
  elected(extendedChangRoberts({ ring }), ring, callers.map(call));

/** Returns the mean over random rings, each in both directions. */
function meanOverRings(nodes: number): number {
  const rings = Math.max(RINGS, Math.ceil(10_000 / nodes));
  const source = random(nodes);
  let sum = 0;
  for (let done = 0; done < rings; done++) {
    const ring = shuffled(nodes, source);
    for (const each of [ring, ring.toReversed()]) sum += onRing(each, each).messages;
  }
  return sum / (2 * rings);
}

function changRobertsCosts(): Cost[] {
  const cost = costOf("chang-roberts");
  const declared = (when: string, text: string): Formula => declaredFormula(extendedChangRoberts(), when, text);
  const highest = (n: number): Run => onRing(ascending(n), [n - 1]);
  const after = (n: number): Run => onRing(ascending(n), [0]);
  const resigned = (ring: readonly NodeId[]): number => {
    const leader = ring.length - 1;
    return elected(extendedChangRoberts({ ring }), ring, [resign(leader)], { leader }).messages;
  };
  const mean = formula("N·H(N) + N, within 5 %, within 1 % for N = 1,000", (n) => {
    const exact = n * harmonic(n) + n;
    const share = n >= 1_000 ? 0.01 : 0.05;
    return [(1 - share) * exact, (1 + share) * exact];
  });
  const [first, second] = ["the highest node starts the election", "the node after the highest starts the election"];
  const resigns = "the leader resigns, its successor is";
  return [
    cost(first, "messages", declared(first, "2N"), (n) => highest(n).messages),
    cost(
      `${first}: turnaround`,
      "message times",
      formula("2N", (n) => 2 * n),
      (n) => highest(n).time,
    ),
    cost(second, "messages", declared(second, "3N − 1"), (n) => after(n).messages),
    cost(
      `${second}: turnaround`,
      "message times",
      formula("3N − 1", (n) => 3 * n - 1),
      (n) => after(n).time,
    ),
    cost(
      "all start an election, ids descend",
      "messages",
      declared("all nodes start an election, ids descend clockwise", "N(N + 1)/2 + N"),
      (n) => onRing(descending(n), descending(n)).messages,
    ),
    cost("all start an election, random rings: mean", "messages", mean, meanOverRings),
    cost(`${resigns} next`, "messages", declared(`${resigns} next on the ring`, "2N + 1"), (n) =>
      resigned(descending(n)),
    ),
    cost(`${resigns} last`, "messages", declared(`${resigns} last on the ring`, "3N − 1"), (n) =>
      resigned(ascending(n)),
    ),
  ];
}

function ringCosts(): Cost[] {
  const cost = costOf("ring", 64);
  const counted = ["election", "coordinator"]; // As in textbooks, receipts are not counted.
  const make = () => extendedRing({ maxDelayMs: 1, processMs: 1 });
  const declared = (when: string, text: string): Formula =>
    declaredFormula(make(), `${when}, receipts not counted`, text);
  const on = (nodes: number, callers: readonly NodeId[]): Run =>
    elected(make(), ascending(nodes), callers.map(call), { counted });
  const past = (n: number): Run => elected(make(), range(0, n), [call(0)], { counted, down: [n] });
  const resigned = (n: number): Run => elected(make(), ascending(n), [resign(n - 1)], { counted, leader: n - 1 });
  return [
    cost("one election", "messages", declared("one election", "2N"), (n) => on(n, [0]).messages),
    cost(
      "one election: turnaround",
      "message times",
      formula("2N", (n) => 2 * n),
      (n) => on(n, [0]).time,
    ),
    cost(
      "two concurrent elections",
      "messages",
      declared("two concurrent elections", "4N"),
      (n) => on(n, [0, 1]).messages,
    ),
    cost(
      "one election, one more node has crashed",
      "messages",
      formula("2N + 1", (n) => 2 * n + 1),
      (n) => past(n).messages,
    ),
    cost("the leader resigns", "messages", declared("the leader resigns", "2N"), (n) => resigned(n).messages),
  ];
}

function epochBullyCosts(): Cost[] {
  const cost = costOf("epoch-bully");
  const declared = (when: string, text: string): Formula => declaredFormula(epochBully(), when, text);
  const once = (n: number, until: number): Run => elected(epochBully(), ascending(n), [call(n - 1)], { until });
  const undisturbed = "an uncontended election";
  const turnaround = formula("5, and 1 to confirm", () => 6);
  return [
    cost(undisturbed, "messages", declared("one uncontended election", "6(N − 1)"), (n) => once(n, 50).messages),
    cost(`${undisturbed}: turnaround`, "message times", turnaround, (n) => once(n, 50).time),
    cost("a round of renewals", "messages", declared("one round of renewals", "2(N − 1)"), (n) => {
      return once(n, 150).messages - once(n, 50).messages;
    }),
  ];
}

export const electionCosts: readonly Cost[] = [
  ...bullyCosts(),
  ...changRobertsCosts(),
  ...ringCosts(),
  ...epochBullyCosts(),
];
