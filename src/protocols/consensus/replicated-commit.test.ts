import { describe, expect, it } from "vitest";
import { reaching } from "../../../test/protocols/reached.ts";
import { explore } from "../../check/explore.ts";
import { walk } from "../../check/search/walks.ts";
import { systemFor } from "../../check/suite.ts";
import type { NodeId } from "../../core/protocol.ts";
import { random } from "../../core/random.ts";
import { simulation } from "../../sim/index.ts";
import { logLine } from "../../trace/log.ts";
import { protocolNamed } from "../index.ts";
import { replicatedCommit } from "./replicated-commit.ts";

const propose = { type: "commit", body: { type: "propose", transactions: 1 } };
const refuse = { type: "commit", body: { type: "refuse" } };

function stage(nodes: number, { seed = 1, options = {} }: { seed?: number; options?: object } = {}) {
  const ids = Array.from({ length: nodes }, (_, id) => id);
  const story: string[] = [];
  const decided: Record<NodeId, string[]> = {};
  const sim = simulation({
    protocol: protocolNamed("replicated-commit").model(options),
    nodes: ids,
    seed,
    delayMs: [5, 10],
    syncMs: 2,
    trace: (entry) => story.push(logLine(entry)),
    onEvent(_at, node, event) {
      const { type, body } = event as { type: string; body: { type: string; value?: string } };
      if (type === "commit" && body.type === "decided")
        decided[node] = [...(decided[node] ?? []), body.value as string];
    },
  });
  for (const id of ids) sim.start(id);
  return {
    sim,
    ids,
    decided,
    story: () => `${story.filter((line) => Number.parseFloat(line) >= 1_000 && !/eartbeat/.test(line)).join("\n")}\n`,
  };
}

const leaderOf = ({ world }: ReturnType<typeof stage>["sim"]): NodeId =>
  world.alive.find((node) => {
    const { log } = world.state(node) as unknown as { log: { role: { is: string } } };
    return log.role.is === "leader";
  }) as NodeId;

describe("commit on a replicated log", () => {
  it("commits when all vote yes, and aborts when one does not", () => {
    const { sim, decided } = stage(3);
    sim.command(1, propose as never);
    sim.run(2_000);
    sim.command(2, refuse as never);
    sim.command(1, propose as never);
    sim.run(4_000);
    expect(decided).toEqual({ 0: ["commit", "abort"], 1: ["commit", "abort"], 2: ["commit", "abort"] });
    expect(sim.verdict()).toEqual([]);
  });

  it.each([3, 4, 5, 7, 9])("takes N + 1 commands of the log, and their messages there: %i nodes", (nodes) => {
    const { sim } = stage(nodes);
    sim.run(1_000);
    const counted = (): number =>
      ["forward", "appendEntries", "appended"].reduce((sum, type) => sum + (sim.messages.byType[type] ?? 0), 0);
    const before = counted();
    sim.command(leaderOf(sim), propose as never);
    sim.run(2_000);
    const { log } = sim.world.state(0) as unknown as { log: { log: { entries: { type: string }[] } } };
    expect(log.log.entries.filter(({ type }) => type === "command").length).toBe(nodes + 1);
    expect(counted() - before).toBe(replicatedCommit().costs[0]?.messages(nodes));
  });

  it("does not block when the coordinator never recovers: without its vote the others abort", async () => {
    const { sim, decided, story } = stage(3);
    sim.run(1_000);
    sim.command(0, propose as never);
    sim.run(1_004); // Node 0 has started the transaction, and stops before it can vote.
    sim.crash(0);
    sim.run(8_000);
    expect(decided).toEqual({ 1: ["abort"], 2: ["abort"] });
    expect(sim.verdict()).toEqual([]);
    await expect(story()).toMatchFileSnapshot("stories/replicated-commit-coordinator-crashes.txt");
  });

  it("commits without its coordinator once that has voted, unlike two-phase commit", () => {
    const { sim, ids, decided } = stage(3);
    sim.run(1_000);
    const leader = leaderOf(sim);
    const [coordinator = 0, third = 0] = ids.filter((node) => node !== leader);
    for (const node of ids) if (node !== third) sim.cut(third, node); // The third node's vote is delayed …
    sim.command(coordinator, propose as never);
    sim.run(1_400);
    sim.crash(coordinator); // … and the coordinator has voted and stops.
    sim.heal();
    sim.run(8_000);
    expect(decided).toEqual({ [leader]: ["commit"], [third]: ["commit"] });
    sim.start(coordinator);
    sim.run(12_000);
    expect(decided[coordinator]).toEqual(["commit"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("needs the journals: a majority without them decides again, and differently", () => {
    const { sim } = stage(3);
    sim.run(1_000);
    sim.command(0, propose as never);
    sim.run(2_000);
    sim.partition([[1], [0, 2]]);
    for (const node of [0, 2]) sim.crash(node, { journal: "lost" });
    for (const node of [0, 2]) sim.start(node);
    sim.command(2, refuse as never);
    sim.run(4_000);
    sim.command(0, propose as never);
    sim.run(6_000);
    expect(sim.violations.map(({ property }) => property)).toContain("atomicity");
  });

  it("keeps atomicity in random runs with crashes, partitions and snapshots", () => {
    let decisions = 0;
    for (let seed = 1; seed <= 12; seed++) decisions += adversity(seed);
    expect(decisions).toBeGreaterThan(100);
  });

  it("keeps atomicity in many random runs", { tags: ["larger"] }, () => {
    for (let seed = 13; seed <= 60; seed++) adversity(seed);
  });

  it("keeps atomicity in every run of one transaction within the bounds", () => {
    const options = systemFor({
      protocol: "replicated-commit",
      variant: "bounded",
      nodes: [0, 1, 2],
      initiators: [0],
      maxTimeouts: 1,
    });
    const protocol = options.properties?.filter(({ name }) => ["atomicity", "unanimity"].includes(name)) ?? [];
    expect(protocol.length).toBe(2);
    const found = reaching(explore({ ...options, properties: protocol, maxStates: 60_000 }), "commit.voted");
    expect(found.verdict).not.toBe("violated");
  });

  it.each(["random", "pct", "swarm"] as const)(
    "keeps atomicity in %s runs with a crash, a recovery, a loss and six timeouts",
    { tags: ["long"] },
    (strategy) => {
      const system = { protocol: "replicated-commit", variant: "bounded", nodes: [0, 1, 2], initiators: [0] };
      const { properties = [], ...options } = systemFor({ ...system, maxTimeouts: 6 });
      const kept = properties.filter(({ name }) => ["atomicity", "unanimity"].includes(name));
      const faults = { crashes: 1, recoveries: 1, losses: 1 };
      const found = walk({ ...options, ...faults, properties: kept, strategy, seed: 1, runs: 150 });
      expect(found.property).toBeNull();
      reaching(found, "led", "commit.voted", "commit.decided");
    },
  );
});

/**
 * Runs five nodes. Some of them crash and refuse. Then the network heals, and every transaction must be decided at
 * every node.
 * @returns the number of decisions
 */
function adversity(seed: number): number {
  const { sim, ids, decided } = stage(5, { seed, options: { commit: { snapshotEvery: 4 } } });
  const chance = random(seed).stream("adversity");
  const down = new Set<NodeId>();
  for (let at = 200; at < 6_000; at += 200) {
    sim.run(at);
    const node = chance.below(5);
    if (down.has(node)) {
      sim.start(node);
      down.delete(node);
    } else if (chance.below(3) === 0) {
      sim.crash(node, { journal: "synced" });
      down.add(node);
    } else if (chance.below(4) === 0) sim.command(node, (chance.below(4) === 0 ? refuse : propose) as never);
    if (chance.below(6) === 0) sim.partition([ids.slice(0, 1 + chance.below(4))]);
    else if (chance.below(3) === 0) sim.heal();
  }
  sim.heal();
  for (const node of down) sim.start(node);
  sim.run(25_000);
  expect(sim.verdict(), `seed ${seed}`).toEqual([]);
  const tallies = ids.map(
    (node) => (sim.world.state(node) as unknown as { commit: { tallies: object } }).commit.tallies,
  );
  for (const other of tallies) expect(other, `seed ${seed}`).toEqual(tallies[0]);
  return Object.values(decided).flat().length;
}
