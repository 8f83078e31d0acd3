/**
 * What an election costs: messages, and turnaround in message times from the call until everybody alive knows the leader.
 * Coulouris et al. §15.3.
 */
import type { NodeId, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { random } from "../../src/core/random.ts";
import { bully } from "../../src/protocols/election/bully.ts";
import { changRoberts } from "../../src/protocols/election/chang-roberts.ts";
import { simulation } from "../../src/sim/simulation.ts";
import type { Claim } from "./figure.ts";
import { range } from "./sections.ts";

type Run = { readonly messages: number; readonly time: number };
type AnyProtocol = Protocol<Vocabulary>;

/** Everybody but `down` answers from rest; then the `tasks` are given. The time is that of the last message. */
function elected(
  protocol: unknown,
  nodes: readonly NodeId[],
  down: readonly NodeId[],
  tasks: readonly (readonly [NodeId, object])[],
): Run {
  let last = 0;
  const sim = simulation<Vocabulary>({
    // Properties look at every node after every step; here only messages and times count.
    protocol: { ...(protocol as AnyProtocol), properties: [] },
    nodes,
    seed: 1,
    delayMs: 1,
    trace(entry) {
      if (entry.kind === "receive") last = entry.at;
    },
  });
  for (const node of nodes) if (!down.includes(node)) sim.wake(node);
  for (const [node, command] of tasks) sim.command(node, command as never);
  sim.run();
  return { messages: sim.messages.total, time: last };
}

const call = (node: NodeId) => [node, { type: "call" }] as const;

/** T_max and T_process in message times; T = 2·T_max + T_process. */
const T_PROCESS = 1;
const T = 2 + T_PROCESS;

function bullyClaims(): Claim[] {
  const protocol = "bully";
  const make = () => bully({ maxDelayMs: 1, processMs: T_PROCESS });
  const best = (n: number): Run =>
    elected(make(), range(0, n - 1), [n - 1], [[n - 2, { type: "suspect", node: n - 1 }], call(n - 2)]);
  const worst = (n: number): Run => elected(make(), range(0, n - 1), [n - 1], [call(0)]);
  return [
    {
      protocol,
      what: "the second-highest notices",
      unit: "messages",
      formula: "N − 2",
      expected: (n) => n - 2,
      measure: (n) => best(n).messages,
    },
    {
      protocol,
      what: "the second-highest notices: turnaround",
      unit: "message times",
      formula: "1",
      expected: () => 1,
      measure: (n) => best(n).time,
    },
    {
      protocol,
      what: "the lowest calls, the highest has crashed",
      unit: "messages",
      formula: "N² − N − 1",
      expected: (n) => n * n - n - 1,
      measure: (n) => worst(n).messages,
      maxNodes: 64,
    },
    {
      protocol,
      what: "the lowest calls, the highest has crashed: turnaround",
      unit: "message times",
      formula: "1 + T + 1, T = 2·T_max + T_process",
      expected: () => T + 2,
      measure: (n) => worst(n).time,
      maxNodes: 64,
    },
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
      sum += elected(changRoberts({ ring: each }), each, [], each.map(call)).messages;
  }
  return sum / (2 * rings);
}

function changRobertsClaims(): Claim[] {
  const protocol = "chang-roberts";
  const descending = (n: number): NodeId[] => range(0, n - 1).reverse();
  const on = (ring: readonly NodeId[], callers: readonly NodeId[]): Run =>
    elected(changRoberts({ ring }), ring, [], callers.map(call));
  return [
    {
      protocol,
      what: "the highest calls",
      unit: "messages",
      formula: "2N",
      expected: (n) => 2 * n,
      measure: (n) => on(range(0, n - 1), [n - 1]).messages,
    },
    {
      protocol,
      what: "the highest calls: turnaround",
      unit: "message times",
      formula: "2N",
      expected: (n) => 2 * n,
      measure: (n) => on(range(0, n - 1), [n - 1]).time,
    },
    {
      protocol,
      what: "the node after the highest calls",
      unit: "messages",
      formula: "3N − 1",
      expected: (n) => 3 * n - 1,
      measure: (n) => on(range(0, n - 1), [0]).messages,
    },
    {
      protocol,
      what: "the node after the highest calls: turnaround",
      unit: "message times",
      formula: "3N − 1",
      expected: (n) => 3 * n - 1,
      measure: (n) => on(range(0, n - 1), [0]).time,
    },
    {
      protocol,
      what: "all call, ids descend",
      unit: "messages",
      formula: "N(N + 1)/2 + N",
      expected: (n) => (n * (n + 1)) / 2 + n,
      measure: (n) => on(descending(n), descending(n)).messages,
    },
    {
      protocol,
      what: "all call, random rings: mean",
      unit: "messages",
      formula: "N·H(N) + N, within 5 %, within 1 % for N = 1,000",
      expected(n) {
        const mean = n * harmonic(n) + n;
        const share = n >= 1_000 ? 0.01 : 0.05;
        return [(1 - share) * mean, (1 + share) * mean];
      },
      measure: meanOverRings,
    },
  ];
}

export const electionClaims: readonly Claim[] = [...bullyClaims(), ...changRobertsClaims()];
