/** What a multicast costs in a group with views, while nothing goes wrong, and what the first view costs. */
import type { Protocol, Vocabulary } from "../../src/core/protocol.ts";
import {
  flushCausal,
  flushCausalTotal,
  flushFifo,
  flushFifoTotal,
  flushIsis,
} from "../../src/protocols/multicast/parts/flush.ts";
import { viewSynchrony } from "../../src/protocols/multicast/view-synchrony.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { costOf, exactly, type Formula } from "./declared.ts";
import type { Cost } from "./figure.ts";
import { range } from "./sections.ts";

interface Run {
  /** From the sending until the last member has delivered. */
  readonly datagrams: number;
  readonly time: number;
  /** Of the agreement on the first view, until the last member has installed it. */
  readonly agreement: number;
}

/** By then everybody is in the first view, and says nothing of it any more. */
const SETTLED = 10_000;
const AGREEING = ["prepare", "promise", "propose", "accept", "decided"];

/** All start, and come to a view together; then one of them sends one message. */
function sentInView(make: () => unknown, nodes: number): Run {
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
  sim.run(SETTLED);
  const before = sim.datagrams;
  sim.command(0, { type: "send", payload: "m" } as never);
  sim.run(SETTLED + 10);
  return { datagrams: datagrams - before, time: time - SETTLED, agreement };
}

const MAX_NODES = 64;

function inView(protocol: string, make: () => unknown, datagrams: Formula, times: number): Cost[] {
  const what = "a multicast, until all have delivered";
  const measured = (n: number): Run => sentInView(make, n);
  const cost = costOf(protocol);
  return [
    cost(what, "datagrams", datagrams, (n) => measured(n).datagrams, MAX_NODES),
    cost(what, "message times", exactly(times), (n) => measured(n).time, MAX_NODES),
  ];
}

/** The message, the proposals of the others, which go to its sender alone, and what is agreed. */
const agreed: Formula = { formula: "1 + (N − 1) + 1", expected: (n) => n + 1 };

export const viewCosts: readonly Cost[] = [
  ...inView("view-synchrony", () => viewSynchrony(), exactly(1), 1),
  costOf("view-synchrony")(
    "agreement on the first view",
    "messages",
    { formula: "3(N − 1)", expected: (n) => 3 * (n - 1) },
    (n) => sentInView(() => viewSynchrony(), n).agreement,
    MAX_NODES,
  ),
  ...inView("fifo, flush", () => flushFifo(), exactly(1), 1),
  ...inView("causal, flush", () => flushCausal(), exactly(1), 1),
  ...inView("isis, flush", () => flushIsis(), agreed, 3),
  ...inView("fifo-total, flush", () => flushFifoTotal(), agreed, 3),
  ...inView("causal-total, flush", () => flushCausalTotal(), agreed, 3),
];
