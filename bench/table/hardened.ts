/** What the hardened mutual exclusions cost while nothing goes wrong, and a new token. */
import type { NodeId } from "../../src/core/protocol.ts";
import { electedServer } from "../../src/protocols/mutex/elected-server/elected-server.ts";
import { epochTokenRing } from "../../src/protocols/mutex/epoch-token-ring/epoch-token-ring.ts";
import type { Mutex } from "../../src/protocols/mutex/family/workload.ts";
import { costOf, declaredFormula, exactly } from "./declared.ts";
import type { Cost } from "./figure.ts";
import { HARDLY, places } from "./measures.ts";
import { type Section, section, usedSection } from "./sections.ts";

/** The hardened central server: the messages of the lock service; what its election costs stands in the other table. */
function electedServerCosts(): Cost[] {
  const cost = costOf("elected-server");
  /** Inside for less than a renewal takes. */
  const stay = 150;
  function served(nodes: number) {
    const used = electedServer({ workload: { stayMs: stay, restMs: 1 } }) as never;
    const counted = ["request", "grant", "release", "renew", "renewed", "withdraw", "recall", "empty"];
    // By then there is a leader, and what an earlier one might have granted has run out.
    const section: Section<Mutex> = usedSection<Mutex>(used, nodes, { mustStart: true, settle: 3_000, counted });
    const leader = section.sim.world.alive.find(
      (node) => (section.sim.world.state(node) as unknown as { mutex: { service: unknown } }).mutex.service !== null,
    );
    const [holder, next] = section.sim.world.alive.filter((node) => node !== leader) as [NodeId, NodeId];
    // The first request of a term makes the server ask what has been granted before.
    section.enter(holder);
    section.leave(holder);
    return { section, holder, next, before: section.spent };
  }
  const enter = (nodes: number) => {
    const { section, holder } = served(nodes);
    return section.enter(holder);
  };
  const handOver = (nodes: number) => {
    const { section, holder, next } = served(nodes);
    section.enter(holder);
    section.ask(next);
    return section.handOver(holder, next);
  };
  function bandwidth(nodes: number): number {
    const { section, holder, before } = served(nodes);
    section.enter(holder);
    section.leave(holder);
    return section.spent - before;
  }
  const maxNodes = 64;
  return [
    cost("entry", "messages", exactly(2), (n) => enter(n).messages, maxNodes),
    cost("client delay", "message times", exactly(2), (n) => enter(n).time, maxNodes),
    cost("hand-over", "messages", exactly(2), (n) => handOver(n).messages, maxNodes),
    cost("hand-over", "message times", exactly(2), (n) => handOver(n).time, maxNodes),
    cost(
      "bandwidth",
      "messages",
      declaredFormula(electedServer(), "one entry and exit of a node that does not serve, within renewMs", "3"),
      bandwidth,
      maxNodes,
    ),
  ];
}

/** The hardened token ring, where a round takes less time than a renewal. */
function epochTokenRingCosts(): Cost[] {
  const cost = costOf("epoch-token-ring");
  const ring = (nodes: number, stay: number) =>
    section(epochTokenRing({ idleMs: HARDLY, renewMs: 1_000_000, leaseMs: 3_000_000 }), nodes, {
      mustStart: true,
      stay,
      counted: ["token"],
    });
  /** From the place of the token to the node that wants in. */
  function entries(nodes: number) {
    return [0, ...places(nodes)].map((place) => {
      const used = ring(nodes, 10_000);
      used.enter(0);
      used.leave(0);
      while (used.spent % nodes !== 0) used.sim.step(); // It is on its way to the first of the ring.
      return used.enter(place);
    });
  }
  function handOvers(nodes: number) {
    return places(nodes).map((place) => {
      const used = ring(nodes, 10_000);
      used.enter(0);
      used.ask(place);
      return used.handOver(0, place);
    });
  }
  function toMakeAToken(nodes: number): number {
    const { sim } = ring(nodes, 1);
    sim.run(2);
    return (sim.messages.byType.requestVote ?? 0) + (sim.messages.byType.voteGranted ?? 0);
  }
  const maxNodes = 64;
  return [
    cost(
      "entry",
      "messages",
      { formula: "0 … N", expected: (n) => [0, n] },
      (n) => entries(n).map(({ messages }) => messages),
      maxNodes,
    ),
    cost(
      "client delay",
      "message times",
      { formula: "0 … N, and 2 until a majority has confirmed", expected: (n) => [0, n + 2] },
      (n) => entries(n).map(({ time }) => time),
      maxNodes,
    ),
    cost(
      "hand-over",
      "messages",
      { formula: "1 … N − 1", expected: (n) => [1, n - 1] },
      (n) => handOvers(n).map(({ messages }) => messages),
      maxNodes,
    ),
    cost(
      "hand-over",
      "message times",
      { formula: "1 … N − 1, and 2 until a majority has confirmed", expected: (n) => [3, n + 1] },
      (n) => handOvers(n).map(({ time }) => time),
      maxNodes,
    ),
    cost(
      "a new token",
      "messages",
      declaredFormula(epochTokenRing(), "a new token, or an entry after a slow round", "2(N − 1)"),
      toMakeAToken,
    ),
  ];
}

export const hardenedCosts: readonly Cost[] = [...electedServerCosts(), ...epochTokenRingCosts()];
