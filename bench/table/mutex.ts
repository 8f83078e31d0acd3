/**
 * What entry, hand-over and bandwidth of each mutual exclusion cost: messages, and message times where the source counts
 * time. Coulouris et al. §15.2: client delay from asking to being inside, synchronization delay from the exit of one to
 * the entry of the next, bandwidth for entry and exit together.
 */
import type { Protocol } from "../../src/core/protocol.ts";
import { centralServer } from "../../src/protocols/mutex/central-server.ts";
import type { Mutex } from "../../src/protocols/mutex/family/workload.ts";
import { raymond, type Tree } from "../../src/protocols/mutex/raymond.ts";
import { ricartAgrawala } from "../../src/protocols/mutex/ricart-agrawala/ricart-agrawala.ts";
import { roucairolCarvalho } from "../../src/protocols/mutex/ricart-agrawala/roucairol-carvalho.ts";
import { suzukiKasami } from "../../src/protocols/mutex/suzuki-kasami.ts";
import { tokenRing } from "../../src/protocols/mutex/token-ring.ts";
import { costOf, declared, declaredFormula, exactly } from "./declared.ts";
import type { Cost } from "./figure.ts";
import { hardenedCosts } from "./hardened.ts";
import { CROWD, costsAtRest, crowdedOf, HARDLY, places } from "./measures.ts";
import { section } from "./sections.ts";
import { votingCosts } from "./voting.ts";

const centralServerCosts = (): Cost[] =>
  costsAtRest("central-server", () => centralServer(), {
    pair: (nodes) => [nodes - 1, nodes - 2],
    entry: exactly(2),
    handOver: exactly(2),
    handOverTime: exactly(2),
    bandwidth: declaredFormula(centralServer(), "one entry and exit of a node that does not serve", "3"),
  });

function tokenRingCosts(): Cost[] {
  const cost = costOf("token-ring");
  const ring = (nodes: number) => section(tokenRing({ idleMs: HARDLY }), nodes, { mustStart: true });
  const enter = (nodes: number, place: number) => ring(nodes).enter(place);
  function handOver(nodes: number, place: number) {
    const used = ring(nodes);
    used.enter(0);
    used.ask(place);
    return used.handOver(0, place);
  }
  /** The holder leaves and wants back in: the token goes all the way round. */
  function comeBack(nodes: number): number {
    const used = section(tokenRing({ idleMs: HARDLY }), nodes, { mustStart: true, stay: 1 });
    const before = used.enter(0).messages;
    used.sim.command(0, { type: "workload", body: { type: "use", entries: 1 } } as never);
    while (used.sim.world.state(0).workload.entries < 2) used.sim.step();
    return used.sim.messages.total - before;
  }
  function whileInside(nodes: number): number {
    const used = ring(nodes);
    used.enter(0);
    used.ask(1);
    return used.sim.messages.total;
  }
  const all = (nodes: number): number[] => places(nodes);
  return [
    cost("entry", "messages", { formula: "0 … N", expected: (n) => [0, n] }, (n) =>
      [0, ...all(n)].map((place) => enter(n, place).messages),
    ),
    cost("client delay", "message times", { formula: "0 … N", expected: (n) => [0, n] }, (n) =>
      [0, ...all(n)].map((place) => enter(n, place).time),
    ),
    cost("hand-over", "messages", { formula: "1 … N − 1", expected: (n) => [1, n - 1] }, (n) =>
      all(n).map((place) => handOver(n, place).messages),
    ),
    cost("hand-over", "message times", { formula: "1 … N − 1", expected: (n) => [1, n - 1] }, (n) =>
      all(n).map((place) => handOver(n, place).time),
    ),
    cost("hand-over to the last holder itself", "messages", { formula: "N", expected: (n) => n }, comeBack),
    cost("bandwidth while one is inside", "messages", exactly(0), whileInside),
  ];
}

/** Of a second entry of the node that was inside last. */
function bandwidthAgainOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): number {
  const used = section(mutex(), nodes);
  used.enter(nodes - 1);
  used.leave(nodes - 1);
  const before = used.sim.messages.total;
  used.enter(nodes - 1);
  used.leave(nodes - 1);
  return used.sim.messages.total - before;
}

function ricartAgrawalaCosts(): Cost[] {
  const protocol = "ricart-agrawala";
  const cost = costOf(protocol);
  const make = (): ReturnType<typeof ricartAgrawala> => ricartAgrawala();
  const formula = "2(N − 1)";
  const expected = declared(make(), "one entry and exit");
  const unkept = declared(roucairolCarvalho(), "one entry and exit, nobody's permission kept");
  return [
    ...costsAtRest(protocol, make, {
      pair: () => [0, 1],
      entry: { formula, expected },
      handOver: exactly(1),
      handOverTime: exactly(1),
      bandwidth: { formula, expected },
    }),
    cost(`bandwidth, ${CROWD}`, "messages an entry", { formula, expected }, (n) => crowdedOf(make, n), 64),
    costOf("ricart-agrawala, roucairol-carvalho")(
      `bandwidth, ${CROWD}`,
      "messages an entry",
      { formula: "0 … 2(N − 1)", expected: (n) => [0, unkept(n)] },
      (n) => crowdedOf(() => roucairolCarvalho(), n),
      64,
    ),
    costOf("ricart-agrawala, roucairol-carvalho")("bandwidth, the same node again", "messages", exactly(0), (n) =>
      bandwidthAgainOf(() => roucairolCarvalho(), n),
    ),
  ];
}

function suzukiKasamiCosts(): Cost[] {
  const protocol = "suzuki-kasami";
  const cost = costOf(protocol);
  const make = (): ReturnType<typeof suzukiKasami> => suzukiKasami();
  const formula = "N";
  const expected = declared(make(), "one entry and exit of a node without the privilege");
  return [
    ...costsAtRest(protocol, make, {
      pair: () => [0, 1],
      entry: { formula, expected },
      handOver: exactly(1),
      handOverTime: exactly(1),
      bandwidth: { formula, expected },
    }),
    cost(
      `bandwidth, ${CROWD}`,
      "messages an entry",
      { formula: "0 … N", expected: (n) => [0, expected(n)] },
      (n) => crowdedOf(make, n),
      64,
    ),
    cost("bandwidth, the same node again", "messages", exactly(0), (n) => bandwidthAgainOf(make, n)),
  ];
}

/** One at an end of the longest way has been inside last; then others want in, at every distance. */
function raymondCosts(tree: Tree, protocol: string, twice: string, once: string): Cost[] {
  const make = (): ReturnType<typeof raymond> => raymond({ tree });
  const worst = declared(make(), "one entry and exit of a node as far from the privilege as the tree allows");
  const deepest = (n: number): number => (tree === "binary" ? 2 ** Math.floor(Math.log2(n)) - 1 : n - 1);
  function entries(nodes: number): { messages: number; time: number; altogether: number }[] {
    const used = section(make(), nodes);
    return [0, ...places(nodes)].map((place) => {
      used.enter(deepest(nodes));
      used.leave(deepest(nodes));
      const before = used.spent;
      const { messages, time } = used.enter(place);
      used.leave(place);
      return { messages, time, altogether: used.spent - before };
    });
  }
  function handOver(nodes: number, place: number) {
    const used = section(make(), nodes);
    used.enter(deepest(nodes));
    used.ask(place);
    return used.handOver(deepest(nodes), place);
  }
  const others = (nodes: number): number[] => [0, ...places(nodes)].filter((place) => place !== deepest(nodes));
  const up: Pick<Cost, "protocol" | "formula" | "expected"> = {
    protocol,
    formula: `0 … ${twice}`,
    expected: (n) => [0, worst(n)],
  };
  const over: typeof up = { protocol, formula: `1 … ${once}`, expected: (n) => [1, worst(n) / 2] };
  return [
    { ...up, what: "entry", unit: "messages", measure: (n) => entries(n).map(({ messages }) => messages) },
    { ...up, what: "client delay", unit: "message times", measure: (n) => entries(n).map(({ time }) => time) },
    { ...over, what: "hand-over", unit: "messages", measure: (n) => others(n).map((at) => handOver(n, at).messages) },
    { ...over, what: "hand-over", unit: "message times", measure: (n) => others(n).map((at) => handOver(n, at).time) },
    { ...up, what: "bandwidth", unit: "messages", measure: (n) => entries(n).map(({ altogether }) => altogether) },
    { ...up, what: `bandwidth, ${CROWD}`, unit: "messages an entry", measure: (n) => crowdedOf(make, n), maxNodes: 64 },
  ];
}

export const mutexCosts: readonly Cost[] = [
  ...centralServerCosts(),
  ...tokenRingCosts(),
  ...ricartAgrawalaCosts(),
  ...suzukiKasamiCosts(),
  ...raymondCosts("binary", "raymond", "2D", "D"),
  ...raymondCosts("star", "raymond, star", "4", "2"),
  ...raymondCosts("line", "raymond, line", "2(N − 1)", "N − 1"),
  // coterie new: mutex
  ...votingCosts,
  ...hardenedCosts,
];
