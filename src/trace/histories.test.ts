import { describe, expect, it } from "vitest";
import { explore } from "../check/explore.ts";
import type { ModelOptions } from "../check/model.ts";
import { Replayer } from "../check/shrink/replay.ts";
import type { Protocol, World } from "../core/protocol.ts";
import { simulation } from "../sim/simulation.ts";
import type { TraceEntry } from "./entry.ts";
import { replay } from "./replay.ts";

type Counter = { state: { count: number }; command: { type: "draw" }; event: { type: "drew"; number: number } };

/** Hands out 1, 2, 3 …, and restarts at 1 after a crash, because its state is not journaled. */
const counter: Protocol<Counter> = {
  name: "counter",
  init: () => ({ count: 0 }),
  command: {
    draw(state, _command, ctx) {
      state.count += 1;
      ctx.emit({ type: "drew", number: state.count });
    },
  },
  shapes: { command: { draw: {} } },
  source: "a toy",
  assumes: [],
  properties: [
    {
      name: "numbers grow",
      claim: "each number is above the one before",
      when: "always",
      history: {
        empty: { last: 0, grows: true },
        after: (before: { last: number; grows: boolean }, { number }) => ({
          last: number,
          grows: before.grows && number > before.last,
        }),
      },
      holds: ({ nodes, history }: World<Counter["state"]>) =>
        nodes.every((node) => history<{ grows: boolean }>(node).grows),
    },
  ],
  costs: [],
  view: () => ({ role: "counting" }),
};

const draw = { type: "draw" } as const;

const crashing: Pick<ModelOptions<Counter>, "protocol" | "network" | "timers" | "begin" | "crashes" | "recoveries"> = {
  protocol: counter,
  network: "fifo",
  timers: "free",
  begin: "idle",
  crashes: 1,
  recoveries: 1,
};

describe("a property that remembers events across crashes", () => {
  it("works in the simulator, and in a recording of the run", () => {
    const entries: TraceEntry<Counter>[] = [];
    const sim = simulation({
      protocol: counter,
      nodes: [0, 1],
      seed: 1,
      delayMs: 1,
      trace: (entry) => void entries.push(entry),
    });
    for (const node of [0, 1]) sim.start(node);
    sim.command(0, draw);
    sim.command(1, draw);
    sim.crash(0);
    expect(sim.violations).toEqual([]);
    sim.start(0);
    expect(sim.violations).toEqual([]);
    sim.command(0, draw);
    expect(sim.violations).toMatchObject([{ property: "numbers grow" }]);
    const [finding] = replay(counter, [0, 1], entries).findings;
    expect(finding?.verdict).toBe("violated");
    expect(entries[finding?.entry as number]).toMatchObject({ kind: "command", node: 0 });
    expect(replay(counter, [0, 1], entries, { until: finding?.entry as number }).findings[0]?.verdict).toBe("holds");
  });

  it("works in the checker, and when its counterexample is replayed", () => {
    const options = {
      ...crashing,
      nodes: [0, 1],
      commands: ({ count }: Counter["state"]) => (count < 2 ? [draw] : []),
    };
    const { verdict, property, path } = explore<Counter>(options);
    expect([verdict, path.map(({ move }) => move.kind)]).toEqual([
      "violated",
      ["command", "crash", "start", "command"],
    ]);
    expect(new Replayer<Counter>(options, property!).replay(path)).toEqual(path);
  });

  it("adds no states if no property remembers anything", () => {
    const options = { ...crashing, nodes: [0], commands: ({ count }: Counter["state"]) => (count < 1 ? [draw] : []) };
    // Running with and without a number, before and after the crash, and stopped.
    expect(explore<Counter>({ ...options, properties: [] }).states).toBe(5);
    expect(explore<Counter>({ ...options, properties: counter.properties, maxStates: 100 }).verdict).toBe("violated");
  });
});
