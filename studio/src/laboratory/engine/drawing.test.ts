import { expect, test } from "vitest";
import { protocolNamed } from "../../../../src/protocols/index.ts";
import { messageInksOf } from "../../../../src/protocols/message-inks.ts";
import { excerptOf } from "../../../../src/trace/excerpt.ts";
import { readTrace } from "../../../../src/trace/file.ts";
import { drawingOf } from "./drawing.ts";
import { TestedLaboratory } from "./laboratory-under-test.ts";

test("places network changes after the last step behind it", async () => {
  const laboratory = new TestedLaboratory();
  await laboratory.run({ protocol: "bully", nodes: "3" });
  const excerpt = excerptOf(readTrace(await laboratory.export()));
  const late = [{ at: 1_000_000, words: "split: 0 | 1, 2" }];
  const { axes } = drawingOf(excerpt, protocolNamed("bully").presentation, messageInksOf("bully"), late);
  expect(axes.time.networks[0]?.since).toBeGreaterThan(Math.max(...axes.time.steps));
});
