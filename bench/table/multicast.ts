/**
 * What a multicast costs: messages, datagrams where one reaches all, and message times until everybody has delivered.
 * Coulouris et al. §15.4. Self-sends are not counted.
 */
import type { NodeId, Vocabulary } from "../../src/core/protocol.ts";
import { unwrapped } from "../../src/core/wrapping.ts";
import { multicast as family } from "../../src/protocols/family.ts";
import { type AnyProtocol, protocolNamed, variantNamed } from "../../src/protocols/index.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { costOf, declaredFormula, exactly } from "./declared.ts";
import type { Cost } from "./figure.ts";
import { logCosts } from "./log.ts";
import { range } from "./sections.ts";
import { viewCosts } from "./views.ts";

interface Run {
  readonly sim: Simulation<Vocabulary>;
  /** When the last delivery was, in message times from the beginning. */
  readonly delivered: number;
  /** How many nodes have delivered, and how many messages and datagrams were sent until the last of them had. */
  readonly deliveries: number;
  readonly messages: number;
  readonly datagrams: number;
}

interface Setting {
  readonly options?: object;
  readonly variant?: string;
  /** The sender crashes as it has sent so many messages. */
  readonly crashAfter?: number;
  /** What is done before it sends, and after. */
  readonly before?: (sim: Simulation<Vocabulary>) => void;
  readonly after?: (sim: Simulation<Vocabulary>) => void;
  /** Where there is no end to it. */
  readonly until?: number;
}

const SENDER: NodeId = 0;

function protocolOf(name: string, { variant, options }: Setting): AnyProtocol {
  const { model } = variant === undefined ? protocolNamed(name) : variantNamed(name, variant);
  // Properties look at every node after every step; here only messages and times count.
  return { ...model(options), properties: [] };
}

/** One node sends one message to all. */
function sent(name: string, nodes: number, setting: Setting = {}): Run {
  const { crashAfter, before, after, until } = setting;
  const figures = { delivered: 0, deliveries: 0, messages: 0, datagrams: 0 };
  let sends = 0;
  const sim: Simulation<Vocabulary> = simulation<Vocabulary>({
    protocol: protocolOf(name, setting),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 1,
    onEvent(at, _node, event) {
      if (unwrapped(event).type !== "delivered") return;
      figures.delivered = at;
      figures.deliveries += 1;
      figures.messages = sim.messages.total;
      figures.datagrams = sim.datagrams;
    },
    ...(crashAfter === undefined ? {} : { trace }),
  });
  function trace({ kind, node }: { readonly kind: string; readonly node: NodeId }): void {
    if (kind === "send" && node === SENDER && ++sends === crashAfter) sim.crash(SENDER);
  }
  for (const node of range(0, nodes - 1)) sim.wake(node);
  before?.(sim);
  sim.command(SENDER, family.ask(SENDER, 1) as never);
  after?.(sim);
  sim.run(until);
  return { sim, ...figures };
}

const total = (run: Run): number => run.sim.messages.total;
const ofType = (run: Run, type: string): number => run.sim.messages.byType[type] ?? 0;

/** Nobody crashes, nothing is lost: all messages that one multicast causes, and when the last node has delivered it. */
function undisturbed(protocol: string, formula: string, times: number): Cost[] {
  const cost = costOf(protocol);
  const [name = protocol, variant] = protocol.split(", ");
  const setting = variant === undefined ? {} : { variant };
  const when = variant === "acknowledged" ? "one multicast, acknowledged" : "one multicast";
  const maxNodes = 1_000;
  return [
    cost(
      "a multicast",
      "messages",
      declaredFormula(protocolOf(name, setting), when, formula),
      (n) => total(sent(name, n, setting)),
      maxNodes,
    ),
    cost(
      "until all have delivered",
      "message times",
      exactly(times),
      (n) => sent(name, n, setting).delivered,
      maxNodes,
    ),
  ];
}

const TO_EACH = "N − 1";
const AGREED = "3(N − 1)";

function basicCosts(): Cost[] {
  const protocol = "basic-multicast, acknowledged";
  const cost = costOf(protocol);
  return [
    ...undisturbed("basic-multicast", TO_EACH, 1),
    ...undisturbed(protocol, "2(N − 1)", 1),
    cost(
      "acknowledgements at the sender",
      "messages",
      { formula: "N − 1", expected: (n) => n - 1 },
      (n) => ofType(sent("basic-multicast", n, { variant: "acknowledged" }), "acknowledgement"),
      1_000,
    ),
  ];
}

function reliableCosts(): Cost[] {
  const protocol = "reliable-multicast";
  const cost = costOf(protocol);
  const half = (n: number): Run => sent(protocol, n, { crashAfter: 1 });
  return [
    ...undisturbed(protocol, "N(N − 1)", 1),
    cost(
      "a multicast whose sender crashes after its first message",
      "messages",
      { formula: "1 + (N − 1)²", expected: (n) => 1 + (n - 1) ** 2 },
      (n) => total(half(n)),
      64,
    ),
    cost("the same, until all have delivered", "message times", exactly(2), (n) => half(n).delivered, 64),
  ];
}

/** Acknowledgements that need a datagram of their own come only when a node has not spoken for so many messages. */
const spokenFor = (nodes: number): object => ({ multicast: { ackEvery: 2 * nodes } });

const ROUNDS = 4;

/** Each node multicasts in its turn, again and again; the last round is for the acknowledgements that are still to come. */
function inTurn(nodes: number): Run {
  const sim: Simulation<Vocabulary> = simulation<Vocabulary>({
    protocol: protocolOf("ip-multicast", { options: spokenFor(nodes) }),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 1,
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  // A node that has received something says so after 5 to 10 ms, unless it has spoken anyway.
  for (let turn = 0; turn < ROUNDS * nodes; turn++) {
    sim.run((4 * turn) / nodes);
    sim.command(turn % nodes, family.ask(turn % nodes, 1) as never);
  }
  return { sim, delivered: 0, deliveries: 0, messages: sim.messages.total, datagrams: sim.datagrams };
}

function ipCosts(): Cost[] {
  const protocol = "ip-multicast";
  const cost = costOf(protocol);
  const maxNodes = 64;
  const last = (n: number): NodeId => n - 1;
  /** The last node misses the message, and finds that out by the next. */
  const lost = (n: number): Run =>
    sent(protocol, n, {
      before(sim) {
        sim.cut(SENDER, last(n));
        sim.command(SENDER, family.ask(SENDER, 1) as never);
        sim.mend(SENDER, last(n));
      },
    });
  const datagramsOf = (run: Run, n: number, type: string): number => ofType(run, type) / (n - 1);
  return [
    cost(
      "a multicast, until all have delivered",
      "datagrams",
      exactly(1),
      (n) => sent(protocol, n).datagrams,
      maxNodes,
    ),
    cost(
      "a multicast, until all have delivered",
      "message times",
      exactly(1),
      (n) => sent(protocol, n).delivered,
      maxNodes,
    ),
    cost(
      "a multicast where all speak in turn, acknowledgements included",
      "datagrams",
      exactly(1),
      (n) => inTurn(n).datagrams / (ROUNDS * n),
      maxNodes,
    ),
    cost(
      "a multicast where nobody else speaks, acknowledgements included",
      "datagrams",
      { formula: "1 + (N − 1)", expected: (n) => n },
      (n) => sent(protocol, n).sim.datagrams,
      maxNodes,
    ),
    cost(
      "a loss: a negative acknowledgement and a repair",
      "datagrams",
      { formula: "1 + 1", expected: () => 2 },
      (n) => {
        const run = lost(n);
        return datagramsOf(run, n, "nack") + datagramsOf(run, n, "repair");
      },
      maxNodes,
    ),
  ];
}

export const multicastCosts: readonly Cost[] = [
  ...basicCosts(),
  ...reliableCosts(),
  ...ipCosts(),
  ...undisturbed("fifo", TO_EACH, 1),
  ...undisturbed("causal", TO_EACH, 1),
  ...undisturbed("isis", AGREED, 3),
  ...undisturbed("fifo-total", AGREED, 3),
  ...undisturbed("causal-total", AGREED, 3),
  ...viewCosts,
  ...logCosts,
];
