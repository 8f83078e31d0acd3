import { describe, expect, it } from "vitest";
import type { Protocol, Vocabulary } from "../core/protocol.ts";
import { random } from "../core/random.ts";
import { type AnyProtocol, protocolNamed } from "../protocols/index.ts";
import { simulation } from "../sim/simulation.ts";
import type { TraceEntry } from "./entry.ts";
import { ReplayMoments, replay } from "./replay.ts";

const nodes = [0, 1, 2, 3, 4];

/** Records a run with crashes, restarts, and lost and duplicated messages. */
function recorded(protocol: AnyProtocol, ask: (node: number, count: number) => object | null): TraceEntry[] {
  const entries: TraceEntry[] = [];
  const run = simulation({
    protocol,
    nodes,
    seed: 3,
    delayMs: [1, 5],
    link: { lossRate: 0.02, duplicateRate: 0.05 },
    trace: (entry) => entries.push(entry as TraceEntry),
  });
  for (const node of nodes) run.start(node);
  run.run(50);
  for (const node of nodes) {
    const command = ask(node, 10);
    if (command !== null) run.command(node, command as never);
  }
  run.run(200);
  run.crash(4);
  run.run(200);
  run.start(4);
  run.run(500);
  return entries;
}

describe.each(["bully", "raft", "isis", "view-synchrony"])("a recording of %s", (name) => {
  const { model, family } = protocolNamed(name);
  const protocol: Protocol<Vocabulary> = { ...model(), properties: [] };
  const entries = recorded(model(), (node, count) => family.ask(node, count));

  it("has the same state at each moment as a replay from its start, in any order of access", () => {
    const moments = new ReplayMoments(protocol, nodes, entries as never[]);
    const { between } = random(1);
    const places = Array.from({ length: 8 }, () => Math.floor(between(0, entries.length)));
    for (const until of [entries.length, 0, ...places, entries.length]) {
      const { snapshot, doubts, lost } = replay(protocol, nodes, entries as never[], { until });
      expect(moments.after(until)).toEqual({ snapshot, doubts, lost });
    }
  });

  it("replays only a few entries for each moment, once its end has been seen", () => {
    const moments = new ReplayMoments(protocol, nodes, entries as never[]);
    moments.keepAll(() => {});
    expect(moments.walked).toBe(entries.length);
    for (let place = entries.length; place > 0; place -= 97) {
      const before = moments.walked;
      moments.after(place);
      expect(moments.walked - before).toBeLessThan(moments.apart);
    }
    const before = moments.walked;
    moments.after(1);
    for (let place = 1; place <= 200; place++) moments.after(place);
    expect(moments.walked - before).toBeLessThanOrEqual(200);
  });
});

it("reports a step that differs from the recording each time it is visited", () => {
  const { model, family } = protocolNamed("isis");
  const protocol: Protocol<Vocabulary> = { ...model(), properties: [] };
  const honest = recorded(model(), (node, count) => family.ask(node, count));
  const told = honest.findLastIndex(({ kind }) => kind === "event");
  const entries = honest.map((entry, index) =>
    index === told ? ({ ...entry, event: { type: "invented" } } as TraceEntry) : entry,
  );
  const moments = new ReplayMoments(protocol, nodes, entries as never[]);
  for (const until of [entries.length, told, told + 1, 0, told - 150, entries.length]) {
    const { snapshot, doubts, lost } = replay(protocol, nodes, entries as never[], { until });
    expect(moments.after(until)).toEqual({ snapshot, doubts, lost });
  }
  expect(moments.after(entries.length).doubts.map(({ why }) => why)).toContain("mismatch");
});
