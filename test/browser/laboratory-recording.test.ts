/**
 * Opens the recording of a real cluster whose leader was killed, and continues it differently in the laboratory.
 *
 * @module-tag long
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { TestedLaboratory } from "../../studio/src/laboratory/engine/laboratory-under-test.ts";
import { placeOf } from "../../studio/src/laboratory/engine/recipe.ts";
import { ClusterUnderTest, endAll, until } from "../e2e/cluster-under-test.ts";
import { recorded } from "../e2e/recorded.ts";
import { noBrowser } from "./chromium.ts";
import { hashOf, headline, laboratoryForTests, ready, settled, stepOf } from "./laboratory-under-test.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(endAll);

/**
 * Runs three members. For a while, a link is cut, messages are delayed, and one member is paused. Then the leader, node
 * 2, is killed, and node 1 takes over.
 */
async function failover(file: string): Promise<void> {
  const cluster = await ClusterUnderTest.up("--protocol", "bully", "--nodes", "3", "--record", file);
  await cluster.agreed(2, [0, 1, 2]);
  const written = (words: string) =>
    until(`the file says ${words}`, () => readFileSync(file, "utf8").includes(words), cluster);
  await cluster.act({ type: "cut", nodes: [0, 1] });
  await written("link to 1 cut");
  await cluster.act({ type: "heal" });
  await written("link to 1 mended");
  await cluster.act({ type: "link-conditions", dropRate: 0, delayMs: [5, 10] });
  await written("others delayed by 5 to 10 ms");
  await cluster.act({ type: "heal" });
  await written("others delayed by 0 to 0 ms");
  cluster.kill(0, "SIGSTOP");
  await cluster.event("paused");
  cluster.kill(0, "SIGCONT");
  await cluster.event("resumed");
  await cluster.agreed(2, [0, 1, 2]);
  // The cluster stamps the crash before it sends the signal, so the crash is recorded before the next leader.
  await cluster.act({ type: "kill", node: 2 });
  await cluster.agreed(1, [0, 1]);
  await recorded(file, 0, 1);
  await recorded(file, 1, 1);
  cluster.signal("SIGINT");
  await cluster.finished;
}

describe.skipIf(noBrowser !== null)("a recording of a real cluster", () => {
  const laboratory = laboratoryForTests();
  const node = new TestedLaboratory();

  /** Expects the same last step on the page and in Node. */
  async function expectEnd(page: Page, sentence: string): Promise<void> {
    await page.getByRole("button", { name: "To the end" }).click();
    await settled(page);
    const run = await node.run(placeOf(await hashOf(page)).words);
    expect(await stepOf(page)).toBe(run.steps.length - 1);
    const look = await node.look(run.steps.length - 1);
    await expect.poll(() => headline(page)).toBe(look.headline);
    expect(look.headline).toBe(sentence);
    const rows = await page.locator("tbody button").allInnerTexts();
    expect(rows).toEqual(run.steps.slice(-rows.length).map(({ lines }) => lines.join("; ")));
  }

  test("is opened, and forked before its leader was killed: the leader continues, and another node crashes", async () => {
    const file = join(folder, "failover.jsonl");
    await failover(file);
    await node.open("failover.jsonl", readFileSync(file, "utf8"));
    const page = await laboratory.open("#/gallery");
    await page.getByLabel("Open a recording").setInputFiles(file);
    await ready(page);
    await expectEnd(page, "Node 1 leads; 2 is down.");

    const { steps, drawing } = await node.run({ recording: "failover.jsonl", protocol: "bully" });
    // Each member records its end of a link when it changes that end, so a link can be cut in one direction only for a
    // moment.
    const networks = drawing.axes.events.networks
      .filter(({ since }, place, all) => since !== all[place + 1]?.since)
      .filter(({ words }) => !words.includes("→"));
    expect(networks.map(({ words }) => words)).toEqual(["cut: 0 – 1", "", "5 to 10 ms of delay", ""]);
    const paused = drawing.lives.filter(({ condition }) => condition === "paused");
    expect(paused.map((life) => life.node)).toEqual([0]);
    expect(drawing.lives.some((life) => life.node === 2 && life.condition === "down" && life.to === null)).toBe(true);
    const killed = steps.findIndex((step) => step.node === 2 && step.lines.includes("crashes"));
    const row = page.locator(`tr[data-row="${killed}"] button`);
    // The table shows the events around the cursor.
    for (let presses = 0; presses < steps.length && (await row.count()) === 0; presses++)
      await page.keyboard.press("ArrowLeft");
    await row.click();
    await page.locator("h1").click();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => headline(page)).toMatch(/^Node 2 leads/);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search actions" }).fill("crash node 1");
    await page.getByRole("option", { name: "Crash node 1" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-testid="state-1"][data-condition="down"]');
    await expectEnd(page, "Node 2 leads; 1 is down.");
  });
});
