/**
 * Checks that after a restart, the client repeats its pending request, and the log first reports the entries that it
 * has decided.
 */
import { expect, test } from "vitest";
import { simulation } from "../../../src/sim/index.ts";
import { logs } from "./logs.ts";

const use = (commands: number) => ({ type: "client", body: { type: "use", commands } }) as never;

test.each(logs.map((log) => [log.name, log] as const))(
  "%s, alone: entries decided before a crash precede requests made after it",
  (_name, { make }) => {
    let isStriking = false;
    const sim = simulation({
      protocol: make({ machine: { kind: "log" }, client: { retryMs: 100 }, log: {} }),
      nodes: [0],
      seed: 1,
      delayMs: 1,
      onEvent(_at, node, { type, body }) {
        if (!isStriking || type !== "client" || (body as { type: string }).type !== "asked") return;
        isStriking = false;
        sim.crash(node, { journal: "kept" });
      },
    });
    const entries = () => (sim.world.state(0).machine.data as { entries: string[] }).entries;
    sim.start(0);
    sim.run(2_000);
    sim.command(0, use(40));
    sim.run(sim.now + 2_000);
    expect(entries()).toHaveLength(40);
    isStriking = true;
    sim.command(0, use(1));
    expect(sim.world.alive).toEqual([]);
    sim.start(0);
    sim.run(sim.now + 3_000);
    expect(entries()).toEqual(Array.from({ length: 41 }, (_, at) => `0.${at + 1}`));
    expect(sim.verdict()).toEqual([]);
  },
);
