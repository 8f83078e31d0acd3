import { expect, it } from "vitest";
import type { TraceEntry } from "./entry.ts";
import { runLogger } from "./log.ts";

it("names lost messages, with their sender or receiver", () => {
  const send = (id: string, to: number): TraceEntry => ({
    at: 0,
    node: 4,
    kind: "send",
    id,
    to,
    message: { type: "election" },
  });
  const lost = (id: string, node: number, why: "cut" | "crashed" | "down"): TraceEntry => ({
    at: 10,
    node,
    kind: "lost",
    id,
    to: 7,
    why,
  });
  const tell = runLogger();
  const entries = [
    send("4-1", 7),
    send("4-2", 7),
    lost("4-1", 7, "crashed"),
    lost("4-2", 4, "cut"),
    lost("x", 7, "down"),
  ];
  expect(entries.map(tell).slice(2)).toEqual([
    "    10.0  node 7  message lost: election from 4 to 7 (crashed)",
    "    10.0  node 4  message lost: election from 4 to 7 (cut)",
    "    10.0  node 7  message lost, to 7 (not running)",
  ]);
});
