import { describe, expect, it } from "vitest";
import type { TraceEntry } from "../../trace/entry.ts";
import { labelled } from "./names.ts";
import { parseScenario } from "./parse.ts";
import { runScenario } from "./run.ts";
import { asVariant } from "./schema.ts";

const { scenario } = parseScenario(
  `name: x
protocol: basic-multicast
nodes: 2
steps: [{ send: 0, times: 2 }]
labels: { "0.1": F1, "0.2": F2 }
expect: { delivered: ["0.1", "0.2"] }
variants: { fifo: { messages: 2 } }
`,
  "x.yaml",
);

describe("the labels of messages", () => {
  it("replace ids of delivered and held-back messages in every part, if the message has a label", () => {
    const entries: TraceEntry[] = [
      { at: 0, node: 0, kind: "event", event: { type: "delivered", id: "0.1" } as never },
      { at: 0, node: 0, kind: "event", event: { type: "multicast", body: { type: "delivered", id: "0.2" } } as never },
      { at: 0, node: 0, kind: "event", event: { type: "said", id: "0.1" } as never },
      { at: 0, node: 1, kind: "view", view: { role: "member", held: ["0.2", "1.1"] }, state: {} },
    ];
    expect(labelled(entries, scenario)).toEqual([
      { at: 0, node: 0, kind: "event", event: { type: "delivered", id: "F1" } },
      { at: 0, node: 0, kind: "event", event: { type: "multicast", body: { type: "delivered", id: "F2" } } },
      { at: 0, node: 0, kind: "event", event: { type: "said", id: "0.1" } },
      { at: 0, node: 1, kind: "view", view: { role: "member", held: ["F2", "1.1"] }, state: {} },
    ]);
    expect(labelled(entries, { ...scenario, labels: {} })).toBe(entries);
  });
});

describe("a scenario under a different protocol", () => {
  it("has the expectations for that protocol", () => {
    expect(asVariant(scenario, "basic-multicast")).toBe(scenario);
    const { protocol, expect: expected } = asVariant(scenario, "fifo");
    expect([protocol, expected]).toEqual(["fifo", { messages: 2, violated: [] }]);
    expect(runScenario(asVariant(scenario, "fifo")).expectations.map(({ what, passed }) => [what, passed])).toEqual([
      ["messages", true],
      ["violated", true],
    ]);
  });

  it("is refused if the scenario does not name the protocol", () => {
    expect(() => asVariant(scenario, "causal")).toThrow(
      'expected the protocol to be one that the scenario names: basic-multicast, fifo, got "causal"',
    );
    expect(() => asVariant(scenario, "constructor")).toThrow("one that the scenario names");
  });
});
