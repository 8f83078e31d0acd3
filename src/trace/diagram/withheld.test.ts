import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { headerFor } from "../../../test/trace/small-traces.ts";
import { parseScenario, runScenario } from "../../experiment/index.ts";
import { protocolNamed } from "../../protocols/index.ts";
import { drawnAs } from "../../protocols/message-inks.ts";
import type { TraceEntry } from "../entry.ts";
import { excerptOf } from "../excerpt.ts";
import { drawSvg } from "../picture/svg.ts";
import { stepsOf, vectorClocks } from "../steps.ts";
import { withheldIn } from "./diagram.ts";

function heldIn(file: string) {
  const entries: TraceEntry[] = [];
  const text = readFileSync(new URL(`../../../scenarios/${file}.yaml`, import.meta.url), "utf8");
  const { scenario } = parseScenario(text, `${file}.yaml`);
  runScenario(scenario, { trace: (entry) => void entries.push(entry) });
  const steps = stepsOf(entries);
  const { withheld } = protocolNamed(scenario.protocol).presentation;
  return { tracks: withheldIn(steps, entries, withheld), steps, entries };
}

test("Ricart–Agrawala: of two nodes that request at the same time, one defers its answer until it leaves", () => {
  const { tracks, steps, entries } = heldIn("ricart-agrawala-equal-times");
  const pairs = tracks.map(({ node, text }) => `${node}: ${text}`);
  expect(pairs).toEqual(expect.arrayContaining(["0: 1’s request", "0: 4’s request", "3: 4’s request"]));
  expect(pairs).not.toContain("4: 0’s request");
  for (const { to } of tracks) {
    const last = steps[to ?? -1]?.indices.map((index) => entries[index]) ?? [];
    expect(last).toContainEqual(expect.objectContaining({ kind: "send" }));
  }
});

test("shows a server's queue, and nothing for an algorithm that withholds nothing", () => {
  expect(heldIn("central-server-one-waits").tracks).toMatchObject([{ node: 1, text: "4’s request" }]);
  expect(heldIn("ring-two-callers").tracks).toEqual([]);
});

test("draws withheld requests as the presentation declares them, and explains the sign", () => {
  const { entries } = heldIn("ricart-agrawala-two-at-once");
  const header = headerFor([1, 2, 3], { protocol: "ricart-agrawala" });
  const trace = excerptOf({ header, entries, clocks: vectorClocks(entries) });
  const drawn = drawSvg(trace, drawnAs(header.protocol));
  expect(drawn).toContain("<title>3’s request is held back</title>");
  expect(drawn).toMatch(/class="key"[^>]*>held back</);
  expect(drawSvg(trace)).not.toContain("held back");
});
