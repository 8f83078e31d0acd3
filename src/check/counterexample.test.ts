import { describe, expect, it } from "vitest";
import type { World } from "../core/protocol.ts";
import { replay } from "../trace/replay.ts";
import { counterexample } from "./counterexample.ts";
import { explore } from "./explore.ts";
import { type SystemSpec, systemFor } from "./suite.ts";

function shown(spec: SystemSpec) {
  const options = systemFor(spec);
  const found = explore(options);
  return { options, found, ...counterexample(options, found) };
}

const specs: SystemSpec[] = [
  { protocol: "bully", nodes: [0, 1, 2] },
  { protocol: "bully", nodes: [0, 1, 2], timers: "quiet", initiators: [0], losses: 1, crashes: 1, recoveries: 1 },
  { protocol: "ricart-agrawala", nodes: [0, 1, 2], crashes: 1 },
  {
    protocol: "ricart-agrawala",
    nodes: [0, 1, 2],
    initiators: [0, 1],
    crashes: 1,
    recoveries: 1,
    property: "ME1 safety",
  },
  { protocol: "chang-roberts", nodes: [0, 1, 2], losses: 1 },
  { protocol: "causal", nodes: [0, 1], losses: 1, duplications: 1, times: 2 },
  { protocol: "paxos", nodes: [0, 1, 2], initiators: [0, 2], property: "termination", maxInFlight: 4 },
];

describe("a counterexample as a trace", () => {
  it.each(specs)("the protocol's own handlers replay it step by step: %j", (spec) => {
    const { options, found, entries } = shown(spec);
    expect(found.verdict).toBe("violated");
    const { doubts, snapshot, findings } = replay(options.protocol, options.nodes, entries);
    expect(doubts).toEqual([]);
    expect(snapshot.nodes.map(({ state }) => state)).toEqual(found.path.at(-1)?.states);
    const { property, verdict } = findings.find((finding) => finding.property === found.property) ?? {};
    expect([property?.name, verdict]).toEqual([found.property?.name, found.loop === null ? "violated" : "unknown"]);
  });

  it.each(specs)("gives every message one id, and receives nothing that was not sent: %j", (spec) => {
    const { entries } = shown(spec);
    const sent = entries.flatMap((entry) => (entry.kind === "send" ? [entry.id] : []));
    const ended = entries.flatMap((entry) => (entry.kind === "receive" || entry.kind === "lost" ? [entry.id] : []));
    expect(new Set(sent).size).toBe(sent.length);
    expect(ended.filter((id) => !sent.includes(id))).toEqual([]);
    expect(new Set(ended).size).toBe(ended.length);
  });

  it("a duplicated message is received twice with one id", () => {
    const twice = { name: "once", claim: "no node receives 1 twice", when: "always" } as const;
    const options = { ...systemFor({ protocol: "ricart-agrawala", nodes: [0, 1], initiators: [0], duplications: 1 }) };
    const heard = (state: unknown): number => (state as { mutex: { clock: number } }).mutex.clock;
    const found = explore({
      ...options,
      properties: [{ ...twice, holds: ({ state }: World<object>) => heard(state(1)) < 3 }],
    });
    const ids = counterexample(options, found).entries.flatMap((entry) => (entry.kind === "receive" ? [entry.id] : []));
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
  });

  it("marks the start of the part that repeats", () => {
    const { entries, violation, found } = shown(specs.at(-1) as SystemSpec);
    const first = entries[violation?.loopFrom as number];
    expect(first).toMatchObject({ at: (found.loop as number) + 1, kind: "receive", node: 0 });
    expect(violation).toMatchObject({
      property: "termination",
      claim: "every node that proposes eventually decides",
    });
  });

  it("has no loop if the run stops, and no violation if nothing was found", () => {
    const stops = shown({ protocol: "chang-roberts", nodes: [0, 1], losses: 1, property: "E2 termination" });
    expect([stops.found.loop, stops.violation?.loopFrom]).toEqual([stops.found.path.length, null]);
    const losses = stops.entries.filter((entry) => entry.kind === "lost");
    expect(losses).toMatchObject([{ why: "dropped" }]);
    expect(shown({ protocol: "chang-roberts", nodes: [0, 1] }).violation).toBeNull();
  });
});
