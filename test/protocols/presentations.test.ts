/**
 * Checks the description of a run, for every algorithm of the registry in every scenario, at the start and at the end.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { unwrapped } from "../../src/core/wrapping.ts";
import { parseScenario, runScenario } from "../../src/experiment/index.ts";
import { sceneAt } from "../../src/experiment/scene.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";

const folder = new URL("../../scenarios/", import.meta.url);
const files = readdirSync(folder).filter((file) => file.endsWith(".yaml"));

/** The first scenario of each protocol. One is enough to test the texts. */
const firsts = new Map(
  files.toReversed().map((file) => {
    const { scenario } = parseScenario(readFileSync(new URL(file, folder), "utf8"), file);
    return [scenario.protocol, scenario] as const;
  }),
);

const SENTENCE = /^[A-Z][^\n]*[^.]\.$/;

function played(protocol: string) {
  const scenario = firsts.get(protocol);
  if (scenario === undefined) throw new Error(`expected a scenario of ${protocol}`);
  const entries: TraceEntry[] = [];
  const result = runScenario(scenario, { trace: (entry) => void entries.push(entry), properties: "at the end" });
  const nodes =
    typeof scenario.nodes === "number" ? Array.from({ length: scenario.nodes }, (_, id) => id) : scenario.nodes;
  return { entries, result, nodes };
}

describe("the headline", () => {
  it.each(protocolNames)("of %s is a sentence from the start to the end, and matches the outcome", (name) => {
    const { entries, result, nodes } = played(name);
    const { presentation, family } = protocolNamed(name);
    const at = (count: number) => presentation.headline(sceneAt(nodes, entries, count));
    for (const count of [0, 1, entries.length >> 1, entries.length]) expect(at(count)).toMatch(SENTENCE);
    const end = at(entries.length);
    const { outcome } = result;
    if ("entries" in outcome) {
      // A crash or an expired lease ends an entry without an exit.
      const endedBy = (node: number) =>
        entries.some(
          (entry) =>
            entry.node === node &&
            (entry.kind === "crash" || (entry.kind === "event" && unwrapped(entry.event).type === "lost")),
        );
      const inside = outcome.entries.filter(
        ({ node, enteredAt, exitedAt }) => enteredAt !== null && exitedAt === null && !endedBy(node),
      );
      for (const { node } of inside) expect(end).toMatch(new RegExp(`node.* ${node}\\b.* inside`, "i"));
      if (inside.length === 0) expect(end).toMatch(/^No node is inside/);
    }
    if ("leader" in outcome && !name.startsWith("super-peer")) {
      const leaders = new Set(Object.values(outcome.leader));
      const [leader] = leaders;
      if (leaders.size === 1 && leader != null) expect(end).toMatch(new RegExp(`node ${leader} leads`, "i"));
    }
    if ("decided" in outcome && family.part === "consensus") {
      for (const value of Object.values(outcome.decided)) if (typeof value === "string") expect(end).toContain(value);
    }
  });

  it("names the node in the critical section and the waiting nodes", () => {
    const { headline } = protocolNamed("ricart-agrawala").presentation;
    const node = (id: number, role: string) => ({ node: id, condition: "up" as const, view: { role } });
    const scene = (...roles: string[]) => ({ nodes: roles.map((role, id) => node(id, role)), events: [] });
    expect(headline(scene("held", "wanted", "wanted"))).toBe("Node 0 is inside; 1 and 2 wait.");
    expect(headline(scene("held", "held", "released"))).toBe("Nodes 0 and 1 are inside.");
    expect(headline(scene("released", "released"))).toBe("No node is inside, and no node waits.");
  });

  it("names the leader and its term, and the last decided entry", () => {
    const { headline } = protocolNamed("raft").presentation;
    const view = (leader: number, decided: number) => ({
      role: "follower",
      leader,
      term: 3,
      log: { decided, last: 9 },
    });
    const said = (...decided: number[]) =>
      headline({
        nodes: decided.map((place, node) => ({ node, condition: "up" as const, view: view(2, place) })),
        events: [],
      });
    expect(said(7, 7, 4)).toBe("Term 3: node 2 leads; entry 7 is decided on a majority of nodes.");
    expect(said(0, 0, 0)).toBe("Term 3: node 2 leads; nothing is decided yet.");
    expect(said(0, 0, 1)).toBe("Term 3: node 2 leads; an entry is decided, but few nodes know it.");
    expect(said(0, 0, 2)).toBe("Term 3: node 2 leads; 2 entries are decided, but few nodes know it.");
  });

  it("calls an entry of PBFT committed once 2f + 1 replicas have it, not once a majority has it", () => {
    const { headline } = protocolNamed("pbft").presentation;
    const said = (...decided: number[]) =>
      headline({
        nodes: decided.map((place, node) => {
          return {
            node,
            condition: "up" as const,
            view: { role: "backup", leader: 0, log: { decided: place, last: 9 } },
          };
        }),
        events: [],
      });
    expect(said(7, 7, 7, 4)).toMatch(/; entry 7 is committed by a quorum \(2f \+ 1\)\.$/);
    expect(said(7, 7, 4, 0)).toMatch(/; entry 4 is committed by a quorum \(2f \+ 1\)\.$/);
    expect(said(7, 7, 7, 7, 4, 4, 4)).toMatch(/; entry 4 is committed/); // 4 of 7 are a majority, and 5 are a quorum.
    expect(said(7, 7, 0, 0)).toMatch(/; 7 entries are decided, but few nodes know it\.$/);
  });

  it("reports no decided entry before there is one", () => {
    const ids = [0, 1, 2, 3];
    const logs = protocolNames.flatMap((name) => {
      const { presentation, model } = protocolNamed(name);
      const { init, view } = model();
      const peersOf = (self: number) => ids.filter((id) => id !== self);
      const nodes = ids.map((node) => ({
        node,
        condition: "up" as const,
        view: view(init(node, peersOf(node)), node),
      }));
      return nodes[0]?.view.log === undefined ? [] : [[name, presentation.headline({ nodes, events: [] })]];
    });
    expect(logs.map(([name]) => name)).toEqual(expect.arrayContaining(["raft", "multi-paxos", "pbft", "fast-paxos"]));
    for (const [name, said] of logs) expect.soft(said, name).toMatch(/nothing is decided yet\.$/);
  });

  it("reports two leaders", () => {
    const { headline } = protocolNamed("bully").presentation;
    const node = (id: number, leader: number) => ({ node: id, condition: "up" as const, view: { role: "x", leader } });
    expect(headline({ nodes: [node(0, 1), node(1, 1), node(2, 2)], events: [] })).toBe("Nodes 1 and 2 both lead.");
  });
});
