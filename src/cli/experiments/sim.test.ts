import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import type { Experiment } from "../../experiment/experiment.ts";
import { runScenario, type Scenario } from "../../experiment/scenario/index.ts";
import { scenarioOf, staged } from "../../experiment/simulate.ts";
import { textOf } from "../output.ts";
import { simReport } from "./sim.ts";

const reported = (scenario: Scenario, end: { until?: number } = {}): string =>
  stripVTControlCharacters(
    textOf(simReport(staged({ scenario, place: () => "" }), runScenario(scenario), end).sections),
  );
const report = (protocol: string, words: Omit<Experiment, "protocol">): string =>
  reported(scenarioOf({ protocol, ...words }), words);

it("prints textbook message counts for comparison", () => {
  const text = report("chang-roberts", { ring: [1, 15, 9, 4, 3, 17, 24], call: [1] });
  expect(text).toContain(
    "messages    20: 13 election, 7 elected\ntextbook    14 messages: the highest node starts the election\n",
  );
  expect(report("ricart-agrawala", {})).toContain("; 8 each of 5\ntextbook    8 messages: one entry and exit\n");
});

it("compares no costs if messages are lost, the run is cut off, or there is one node", () => {
  const lossy = report("causal", { loss: 0.5 });
  expect(lossy).toContain("5 nodes, seed 1, messages lost at a rate of 0.5\n");
  expect(lossy).toMatch(/^messages {4}20: 20 multicast; 5 if one datagram reaches all; [1-9]\d* never arrived$/m);
  expect(lossy).not.toContain("textbook");
  expect(report("bully", { nodes: 1 })).not.toContain("textbook");
  expect(report("token-ring", {})).toMatch(/^messages {4}667: 667 token$/m);
});

it("uses the message names of the scenario, and lists their ids", () => {
  const named = { ...scenarioOf({ protocol: "fifo", nodes: 2, send: [0] }), labels: { "0.1": "F1" } };
  const text = reported(named);
  expect(text).toContain("delivered   F1, at 0 and 1\nnames       F1 = 0.1\n");
  expect(report("fifo", { nodes: 2, send: [0] })).toContain("delivered   0.1, at 0 and 1\nmessages ");
});

it("states which option cut off a run", () => {
  const text = "10,000 ms of virtual time; cut off at 10,000 ms";
  expect(report("heartbeat", {})).toContain(`${text} (--until by default)\n`);
  expect(report("heartbeat", { until: 10_000 })).toContain(`${text} (--until)\n`);
  expect(reported({ ...scenarioOf({ protocol: "heartbeat" }), name: "beats" })).toContain(`${text} (until)\n`);
});

it("does not report a cut-off for a run that became idle", () => {
  for (const words of [{}, { started: true }, { until: 5_000 }] as const)
    expect(report("bully", words)).toMatch(/ ms of virtual time$/m);
  expect(report("chang-roberts", { until: 5_000 })).toContain("textbook");
});
