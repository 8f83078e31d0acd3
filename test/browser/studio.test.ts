/** The page in a real browser, against a real cluster. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ClusterUnderTest, endAll } from "../e2e/cluster-under-test.ts";
import { PATIENCE_MS } from "../patience.ts";
import { launch, noBrowser } from "./chromium.ts";
import { drawn } from "./drawn.ts";

if (noBrowser !== null) console.warn(`The browser tests are skipped: ${noBrowser}.`);

describe.skipIf(noBrowser !== null)("the studio", () => {
  let browser: Browser;
  let cluster: ClusterUnderTest;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  beforeEach(async () => {
    complaints.length = 0;
    cluster = await ClusterUnderTest.up("--nodes", "5");
    page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    await page.goto(cluster.ready.studio as string);
  });
  afterEach(async () => {
    await page?.close();
    await endAll();
    expect(complaints).toEqual([]);
  });

  const leads = (node: number) => page.waitForSelector(`[data-testid="leader"][data-leader="${node}"]`);

  test("shows the leader; Kill ends its process; the next one leads; the election's messages are arrows", async () => {
    await leads(4);
    await page.waitForSelector('[data-testid="node-4"][data-process="running"][data-role="leader"]');

    await page.getByRole("button", { name: "Kill node 4" }).click();
    await leads(3);
    await page.waitForSelector('[data-testid="node-4"][data-process="exited"]');
    await cluster.agreed(3, [0, 1, 2, 3]); // The page says so once one of them follows it.

    const coordinators = async () => (await drawn(page))?.messages.filter(({ type }) => type === "coordinator").length;
    await expect.poll(coordinators).toBeGreaterThanOrEqual(3);
    await expect.poll(() => page.getByTestId("log").innerText()).toMatch(/node 4 was killed/i);

    await page.getByRole("button", { name: "Restart node 4" }).click();
    await leads(4);
  });

  test("Pause stops a process and Resume lets it go on, by keyboard alone", async () => {
    await leads(4);
    await page.getByRole("button", { name: "Pause node 4" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-testid="node-4"][data-process="paused"]');
    await leads(3);
    await page.getByRole("button", { name: "Resume node 4" }).focus();
    await page.keyboard.press("Enter");
    await leads(4);
  });

  test("a split has a leader on each side, and one again when it is healed", { tags: ["long"] }, async () => {
    await leads(4);
    await cluster.act({
      type: "split",
      groups: [
        [0, 1, 2],
        [3, 4],
      ],
    });
    await page.waitForSelector('[data-testid="leader"][data-leader="split"]');
    await page.getByRole("button", { name: /heal/i }).first().click();
    await leads(4);
  });

  test("says that the cluster is gone, and does not pretend", { tags: ["long"] }, async () => {
    await leads(4);
    page.removeAllListeners("console"); // The browser itself reports each connection that is refused.
    cluster.signal("SIGINT");
    await cluster.finished;
    await expect.poll(() => page.getByRole("alert").first().innerText()).not.toBe("");
  });
});
