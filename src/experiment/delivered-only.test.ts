import { describe, expect, it } from "vitest";
import { protocolNamed, protocolNames } from "../protocols/index.ts";
import { LostMessages } from "../sim/tally.ts";
import { runScenario, scenarioSchema } from "./scenario/index.ts";

const forms = protocolNames.flatMap((protocol) => [
  { protocol, form: protocol },
  ...Object.keys(protocolNamed(protocol).variants).map((variant) => ({
    protocol,
    variant,
    form: `${protocol} (${variant})`,
  })),
]);

describe("the count of delivered messages", () => {
  it.each(forms)("is between 0 and the number sent, for each type of $form", ({ form: _form, ...words }) => {
    const lost = new LostMessages();
    const { family } = protocolNamed(words.protocol);
    const steps = family.verb === null ? [] : [{ [family.verb]: "all" as const }];
    const scenario = scenarioSchema.parse({
      ...words,
      name: "lossy",
      nodes: 4,
      begin: { nodes: "started" },
      until: 3_000,
      network: { lossRate: 0.3, duplicateRate: 0.1 },
      steps: [...steps, { at: 1_500, crash: 2 }],
    });
    const { messages, lost: losses } = runScenario(scenario, { trace: (entry) => lost.see(entry) });
    const arrived = lost.without(messages);
    expect(losses).toBeGreaterThan(0);
    expect(arrived.total).toBeLessThan(messages.total);
    expect(arrived.total).toBeGreaterThanOrEqual(0);
    for (const [type, count] of Object.entries(arrived.byType)) {
      expect(count, type).toBeGreaterThanOrEqual(0);
      expect(count, type).toBeLessThanOrEqual(messages.byType[type] ?? 0);
    }
    const sum = Object.values(arrived.byType).reduce((a, b) => a + b, 0);
    expect(sum).toBe(arrived.total);
  });
});
