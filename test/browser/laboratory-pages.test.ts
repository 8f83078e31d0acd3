/** The other pages of the laboratory in a real browser. @module-tag long */
import type { Server } from "node:http";
import type { Browser, BrowserContext } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { simulate } from "../../src/experiment/index.ts";
import { launch, noBrowser } from "./chromium.ts";
import { openPage, PATIENCE_MS, staticHost } from "./laboratory-under-test.ts";

describe.skipIf(noBrowser !== null)("the laboratory's other pages", () => {
  let browser: Browser;
  let context: BrowserContext;
  let host: Server;
  let url: string;
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await launch();
    ({ server: host, url } = await staticHost());
  });
  afterAll(async () => {
    await browser?.close();
    host?.close();
  });
  beforeEach(async () => {
    complaints.length = 0;
    context = await browser.newContext({ viewport: { width: 1440, height: 1000 } });
  });
  afterEach(async () => {
    await context?.close();
    expect(complaints).toEqual([]);
  });

  test("Compare: one time for all, and the link says who is compared", async () => {
    const page = await openPage(context, `${url}#/compare?protocol=bully&with=ring&nodes=4`, complaints);
    for (const protocol of ["bully", "ring"]) {
      const total = String(simulate({ protocol, nodes: 4 }).messages.total);
      expect(await page.getByTestId(`total-${protocol}`).innerText()).toBe(total);
      await expect.poll(() => page.getByTestId(`sent-${protocol}`).innerText(), { timeout: PATIENCE_MS }).toBe(total);
    }
    await page.getByRole("button", { name: "To the start" }).click();
    await expect.poll(() => page.getByTestId("sent-ring").innerText(), { timeout: PATIENCE_MS }).toBe("0");
    await page.getByLabel("Add a protocol").selectOption("chang-roberts");
    await page.waitForSelector('[data-case="chang-roberts"] td');
    await page.getByRole("button", { name: "Leave ring out" }).click();
    await page.waitForSelector('[data-case="ring"]', { state: "detached" });
    expect(new URL(page.url()).hash).toMatch(/^#\/compare\?protocol=bully&nodes=4&with=chang-roberts/);
  });
});
