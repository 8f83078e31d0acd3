/**
 * The cost of a multicast: messages, or datagrams if one datagram reaches all members, and message times until every
 * member has delivered. Coulouris et al. §15.4. Messages that a node sends to itself are not counted.
 */
import type { NodeId, Vocabulary } from "../../src/core/protocol.ts";
import { unwrapped } from "../../src/core/wrapping.ts";
import { multicast as family } from "../../src/protocols/family.ts";
import { type AnyProtocol, protocolNamed, variantNamed } from "../../src/protocols/index.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { type Cost, costOf, declaredFormula, exactly, formula, range } from "./cost.ts";
import { groupCosts } from "./groups.ts";

interface Setting {
  readonly variant?: string;
  readonly options?: object;
  /** The sender crashes at the message with this number. */
  readonly crashAfter?: number;
  /** How long a node is busy with one message, in message times. */
  readonly processing?: number;
  /** Called before the message is sent. */
  readonly before?: (sim: Simulation<Vocabulary>) => void;
}

const SENDER: NodeId = 0;
const send = (sim: Simulation<Vocabulary>, node = SENDER): void => sim.command(node, family.ask(node, 1) as never);

function protocolOf(name: string, { variant, options }: Setting): AnyProtocol {
  const { model } = variant === undefined ? protocolNamed(name) : variantNamed(name, variant);
  // Properties would inspect every node after every step, but only messages and times are measured here.
  return { ...model(options), properties: [] };
}

/** Simulates one message from one node to all. */
function sent(name: string, nodes: number, setting: Setting = {}) {
  const { crashAfter, processing = 0, before } = setting;
  /** The time of the last delivery in message times, and the number of datagrams sent until then. */
  const delivered = { at: 0, datagrams: 0 };
  const queue = { arrivals: [] as number[], handled: [] as number[] };
  let sends = 0;
  const sim: Simulation<Vocabulary> = simulation<Vocabulary>({
    protocol: protocolOf(name, setting),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 1,
    processingMs: processing,
    onEvent(at, _node, event) {
      if (unwrapped(event).type !== "delivered") return;
      delivered.at = at;
      delivered.datagrams = sim.datagrams;
    },
    trace(entry) {
      if (entry.kind === "send" && entry.node === SENDER && ++sends === crashAfter) sim.crash(SENDER);
      // A message is sent once its sender has handled the stimulus.
      if (entry.kind === "send" && entry.to === SENDER) queue.arrivals.push(entry.at + processing + 1);
      if (entry.kind === "receive" && entry.node === SENDER) queue.handled.push(entry.at);
    },
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  before?.(sim);
  send(sim);
  sim.run();
  return { sim, delivered, queue, ofType: (type: string): number => sim.messages.byType[type] ?? 0 };
}

/** Returns the costs without crashes and losses: all messages for one multicast, and the time of the last delivery. */
function undisturbed(protocol: string, text: string, times: number): Cost[] {
  const cost = costOf(protocol, 1_000);
  const [name = protocol, variant] = protocol.split(", ");
  const setting = variant === undefined ? {} : { variant };
  const when = variant === "acknowledged" ? "one multicast, with acknowledgements" : "one multicast";
  const messages = declaredFormula(protocolOf(name, setting), when, text);
  return [
    cost("a multicast", "messages", messages, (n) => sent(name, n, setting).sim.messages.total),
    cost("until all have delivered", "message times", exactly(times), (n) => sent(name, n, setting).delivered.at),
  ];
}

const TO_EACH = "N − 1";
const AGREED = "3(N − 1)";

/** Returns the maximum length of the sender's queue of messages that have arrived but have not yet been handled. */
function longestQueue({ arrivals, handled }: ReturnType<typeof sent>["queue"]): number {
  const sorted = arrivals.toSorted((a, b) => a - b);
  let [most, done] = [0, 0];
  for (const [i, at] of sorted.entries()) {
    while (done < handled.length && (handled[done] as number) <= at) done += 1;
    most = Math.max(most, i + 1 - done);
  }
  return most;
}

/** Returns the cost of acknowledgements, and their effect on the receiver (ack implosion). */
function acknowledgedCosts(): Cost[] {
  const cost = costOf("basic-multicast, acknowledged", 1_000);
  const acknowledged = { variant: "acknowledged" };
  const implosion = (n: number) => sent("basic-multicast", n, { ...acknowledged, processing: 0.5 });
  const last = (n: number): number => (implosion(n).queue.handled.at(-1) as number) + 0.5;
  return [
    cost(
      "acknowledgements at the sender",
      "messages",
      formula(TO_EACH, (n) => n - 1),
      (n) => sent("basic-multicast", n, acknowledged).ofType("acknowledgement"),
    ),
    cost(
      "most that wait there, if a node takes ½ for each",
      "messages",
      formula("N − 2", (n) => n - 2),
      (n) => longestQueue(implosion(n).queue),
    ),
    cost(
      "the same: until the sender is done",
      "message times",
      formula("3 + (N − 1) / 2", (n) => 3 + (n - 1) / 2),
      last,
    ),
  ];
}

function reliableCosts(): Cost[] {
  const protocol = "reliable-multicast";
  const cost = costOf(protocol, 64);
  const half = (n: number) => sent(protocol, n, { crashAfter: 1 });
  const relayed = formula("1 + (N − 1)²", (n) => 1 + (n - 1) ** 2);
  return [
    ...undisturbed(protocol, "N(N − 1)", 1),
    cost(
      "a multicast whose sender crashes after its first message",
      "messages",
      relayed,
      (n) => half(n).sim.messages.total,
    ),
    cost("the same, until all have delivered", "message times", exactly(2), (n) => half(n).delivered.at),
  ];
}

const ROUNDS = 4;

/** Makes the nodes take turns at multicasting, several times. Returns the number of datagrams per multicast. */
function inTurn(nodes: number): number {
  const sim: Simulation<Vocabulary> = simulation<Vocabulary>({
    // A node sends separate acknowledgements only after this many messages without having sent one of its own.
    protocol: protocolOf("ip-multicast", { options: { multicast: { ackEvery: 2 * nodes } } }),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 1,
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  // A node that has received a message acknowledges it after 5 to 10 ms, unless it sends another message first.
  for (let turn = 0; turn < ROUNDS * nodes; turn++) {
    sim.run((4 * turn) / nodes);
    send(sim, turn % nodes);
  }
  return sim.datagrams / (ROUNDS * nodes);
}

function ipCosts(): Cost[] {
  const protocol = "ip-multicast";
  const cost = costOf(protocol, 64);
  /**
   * Returns the messages needed to repair a loss: the last node misses a message, and detects this when it gets the
   * next one.
   */
  const lost = (n: number): number => {
    const { ofType } = sent(protocol, n, {
      before(sim) {
        sim.cut(SENDER, n - 1);
        send(sim);
        sim.mend(SENDER, n - 1);
      },
    });
    return (ofType("nack") + ofType("repair")) / (n - 1);
  };
  const what = "a multicast, until all have delivered";
  const alone = formula("1 + (N − 1)", (n) => n);
  return [
    cost(what, "datagrams", exactly(1), (n) => sent(protocol, n).delivered.datagrams),
    cost(what, "message times", exactly(1), (n) => sent(protocol, n).delivered.at),
    cost("a multicast if all members send in turn, with acknowledgements", "datagrams", exactly(1), inTurn),
    cost("a multicast if no other member sends, with acknowledgements", "datagrams", alone, (n) => {
      return sent(protocol, n).sim.datagrams;
    }),
    cost(
      "a lost message: a negative acknowledgement and a repair",
      "datagrams",
      formula("1 + 1", () => 2),
      lost,
    ),
  ];
}

export const multicastCosts: readonly Cost[] = [
  ...undisturbed("basic-multicast", TO_EACH, 1),
  ...undisturbed("basic-multicast, acknowledged", "2(N − 1)", 1),
  ...acknowledgedCosts(),
  ...reliableCosts(),
  ...ipCosts(),
  ...undisturbed("fifo", TO_EACH, 1),
  ...undisturbed("causal", TO_EACH, 1),
  ...undisturbed("isis", AGREED, 3),
  ...undisturbed("fifo-total", AGREED, 3),
  ...undisturbed("causal-total", AGREED, 3),
  ...groupCosts,
];
