import { expect, test } from "vitest";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import { bothWays } from "./network-turns.ts";
import type { Words } from "./recipe.ts";

const laboratory = new TestedLaboratory();

const told = async (words: Words) =>
  (await laboratory.run(words)).drawing.axes.events.networks.map(({ words: said }) => said);

test("shows loss and delay from a form from the beginning, but not the usual delay", async () => {
  const words = { protocol: "ricart-agrawala", nodes: "3" };
  expect(await told(words)).toEqual([]);
  expect(await told({ ...words, delay: "10" })).toEqual([]);
  expect(await told({ ...words, delay: "1..100", loss: "0.25", duplicate: "0.05" })).toEqual([
    "25 % of the messages dropped; 5 % of the messages twice; 1 to 100 ms of delay",
  ]);
  expect(await told({ ...words, delay: "normal:40,2", reorder: "on" })).toEqual([
    "about 40 ms of delay; messages overtake each other",
  ]);
});

test("keeps the network unchanged except for the effect of an act", async () => {
  const words = { protocol: "ricart-agrawala", nodes: "3", loss: "0.1" };
  const { steps } = await laboratory.run(words);
  const fork = `${steps[4]?.entries} slow 0 1`;
  const after = await told({ ...words, fork });
  expect(after[0]).toBe("10 % of the messages dropped");
  expect(after.at(-1)).toBe("10 % of the messages dropped; 0 – 1: 100 ms of delay");
});

test("mends cuts with a heal, keeps slow links slow, and describes a changed link once", async () => {
  const { steps } = await laboratory.run({ protocol: "bully", nodes: "3" });
  const at = steps[3]?.entries;
  const fork = [`${at} slow 0 1`, `${at} isolate 2`, `${at} heal 0`, `${at} slow 0 1`].join(";");
  const after = await told({ protocol: "bully", nodes: "3", fork });
  expect(after.some((words) => words.includes("split: 2 | 0, 1"))).toBe(true);
  expect(after.at(-1)).toBe("0 – 1: 100 ms of delay");
});

test("describes equal conditions in both directions once", () => {
  expect(bothWays("cut: 0 → 1; cut: 1 → 0; 1 → 2: 9 ms of delay")).toBe("cut: 0 – 1; 1 → 2: 9 ms of delay");
  expect(bothWays("1 → 0: 9 ms of delay; 0 → 1: 8 ms of delay")).toBe("1 → 0: 9 ms of delay; 0 → 1: 8 ms of delay");
  expect(bothWays("")).toBe("");
});
