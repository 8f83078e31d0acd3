/** A total order in a real browser: while one member stands still, the others hold back what it has not proposed a place for. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ClusterUnderTest, endAll } from "../e2e/cluster-under-test.ts";
import { PATIENCE_MS } from "../patience.ts";
import { launch, noBrowser } from "./chromium.ts";
import { drawn } from "./drawn.ts";

describe.skipIf(noBrowser !== null)("the studio of a multicast", () => {
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    await page?.close();
    await endAll();
    expect(complaints).toEqual([]);
  });

  test("shows what is held back at its node and below its life line, and marks deliveries apart", async () => {
    const cluster = await ClusterUnderTest.up("--nodes", "3", "--protocol", "isis");
    page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(cluster.ready.studio as string);

    await page.waitForSelector('[data-testid="node-2"][data-process="running"]');
    await cluster.act({ type: "pause", node: 2 });
    await page.waitForSelector('[data-testid="node-2"][data-process="paused"]');
    await page.getByRole("button", { name: "Send command to node 0" }).click();
    expect(await page.getByRole("menuitem").allInnerTexts()).toEqual(["Send"]);
    await page.getByRole("menuitem", { name: "Send" }).click();

    for (const node of [0, 1])
      await expect.poll(() => page.getByTestId(`held-${node}`).innerText()).toBe("holds back 0.1");
    const held = async () => (await drawn(page))?.held;
    const deliveries = async () => (await drawn(page))?.marks.filter(({ shape }) => shape === "delivery").length;
    for (const node of [0, 1]) await expect.poll(held).toContain(`0.1 held back at node ${node}`);
    expect(await deliveries()).toBe(0);

    await cluster.act({ type: "resume", node: 2 });
    await expect.poll(deliveries).toBe(3);
    await page.waitForSelector('[data-testid="held-0"]', { state: "detached" });
    await expect
      .poll(async () => (await held())?.find((title) => title.startsWith("0.1 held back at node 0 for ")))
      .toBeDefined();
    await expect.poll(() => page.getByTestId("log").innerText()).toMatch(/delivers? 0\.1, “greeting 1”/);
  });
});
