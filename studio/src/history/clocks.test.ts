import { expect, test } from "vitest";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { vectorClocks } from "../../../src/trace/steps.ts";
import { Chronicle } from "./chronicle.ts";
import { clocksOf } from "./clocks.ts";
import { clusterOf, receive, send } from "./fixtures.ts";

const start = (node: number): TraceEntry => ({ at: 0, node, kind: "start" });
const run = [
  ...[start(0), start(1), start(2)],
  ...[
    send(10, 0, 1),
    send(10, 0, 2),
    receive(12, 0, 1, 10),
    send(12, 1, 2),
    receive(14, 1, 2, 12),
    receive(20, 0, 2, 10),
  ],
];

test("gives the same clocks as the trace, in any order of the nodes", () => {
  const expected = vectorClocks(run);
  const byNode = [2, 1, 0].flatMap((node) => run.filter((entry) => entry.node === node));
  const { messages } = new Chronicle(clusterOf([0, 0, 0]), byNode);
  const clockAt = clocksOf(messages);
  for (const [index, entry] of run.entries()) {
    const message =
      entry.kind === "receive" || entry.kind === "send" ? messages.find(({ id }) => id === entry.id) : null;
    const step = entry.kind === "receive" ? message?.receivedStep : message?.sentStep;
    if (typeof step === "number") expect(clockAt(entry.node, step)).toEqual(expected[index]);
  }
});
