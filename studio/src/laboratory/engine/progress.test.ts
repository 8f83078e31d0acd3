import { expect, it } from "vitest";
import type { Progress } from "./answers.ts";
import { Laboratory } from "./laboratory.ts";

it("reports progress of a long run while it is simulated and while its states are stored", async () => {
  const laboratory = new Laboratory(() => Promise.reject(new Error("expected no scenario")));
  const told: Progress[] = [];
  const words = { protocol: "isis", nodes: "5", messages: "30" };
  const run = laboratory.run(words, (progress) => told.push(progress));
  const { entries } = await run;
  const counts = (phase: string) => told.flatMap((each) => (each.phase === phase ? [each.events] : []));
  const simulated = counts("simulated");
  expect(simulated).toEqual(Array.from({ length: Math.floor(entries / 2_000) }, (_, i) => (i + 1) * 2_000));
  expect(simulated.length).toBeGreaterThan(1);
  expect(counts("ready to view").at(-1)).toBeGreaterThan(entries - 2_000);
});
