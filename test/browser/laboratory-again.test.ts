/**
 * Checks that a reopened page shows the same contents, and that a stopped check can be restarted.
 *
 * @module-tag long
 */
import { describe, expect, test } from "vitest";
import { noBrowser } from "./chromium.ts";
import { hashOf, laboratoryForTests, ready, settled, stepOf } from "./laboratory-under-test.ts";

describe.skipIf(noBrowser !== null)("the laboratory, opened again", () => {
  const laboratory = laboratoryForTests();

  test("a page without a run in its address keeps its run and step when it is reloaded, and in Embed", async () => {
    const page = await laboratory.open("#/run");
    await ready(page);
    await page.getByRole("button", { name: "To the start" }).click();
    await page.keyboard.press("ArrowRight"); // The button still has the focus.
    await page.keyboard.press("ArrowRight");
    await settled(page);
    await expect.poll(() => hashOf(page)).toBe("#/run?at=1");
    await page.reload();
    await ready(page);
    expect(await stepOf(page)).toBe(1);
    await page.getByRole("button", { name: "One step forward" }).click();
    await expect.poll(() => hashOf(page)).toBe("#/run?at=2");
    await page.getByRole("navigation").getByRole("link", { name: "embed" }).click();
    const code = await page.getByTestId("embed-code").innerText();
    expect(code).toContain("?embed#/run?protocol=bully&amp;at=2");
  });

  test("so does Compare", async () => {
    const page = await laboratory.open("#/compare");
    await page.waitForSelector('[data-case="chang-roberts"] .now');
    await page.getByRole("button", { name: "To the start" }).click();
    await expect.poll(() => hashOf(page)).toBe("#/compare?at=-1");
    await page.reload();
    await page.waitForSelector('[data-case="chang-roberts"] .now');
  });

  test("a stopped check starts over; another protocol is chosen while it works", async () => {
    const page = await laboratory.open("#/check?protocol=raft&nodes=3&crashes=2&commands=3&losses=2");
    const title = page.locator("h1");
    await page.getByLabel(/^losses/).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => title.innerText()).toBe("Stopped.");
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await expect.poll(() => title.innerText()).toBe("Checking …");
    await page
      .locator("form label", { hasText: /^protocol/ })
      .locator("select")
      .selectOption("bully");
    await page.waitForSelector('[data-testid="verdict"][data-verdict="violated"]');
    await page.getByLabel(/^losses/).waitFor();
  });

  test("Ctrl+Shift+Z, which redoes elsewhere, undoes nothing", async () => {
    const page = await laboratory.open("#/run?scenario=bully-a-highest-crashed&fork=20+crash+6");
    await ready(page);
    await page.keyboard.press("Control+Shift+Z");
    expect(await hashOf(page)).toContain("fork=20+crash+6");
    await page.keyboard.press("Control+z");
    expect(await hashOf(page)).not.toContain("fork=");
  });

  test("reports that the browser does not let the page copy", async () => {
    await laboratory.context.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    const page = await laboratory.open("#/run?protocol=bully");
    await ready(page);
    await page.getByRole("button", { name: "Copy link" }).click();
    expect(await page.getByRole("alert").innerText()).toMatch(/^Nothing was copied: .* address bar\.$/);
    await page.getByRole("navigation").getByRole("link", { name: "embed" }).click();
    await page.getByRole("button", { name: "Copy the code" }).click();
    expect(await page.getByRole("alert").innerText()).toMatch(/^Nothing was copied: .* Select the code above\.$/);
  });

  test("a worker that could not be loaded is reported, and the next run has a new one", async () => {
    await laboratory.context.addInitScript(`{
      window.workers = { made: 0, failed: 0 };
      window.Worker = class extends Worker {
        constructor(...words) {
          super(...words);
          window.workers.made += 1;
          this.addEventListener("error", () => (window.workers.failed += 1));
        }
      };
    }`);
    await laboratory.context.route(/assets\/worker.*\.js$/, (route) => route.abort());
    const page = await laboratory.open("#/run?protocol=bully");
    await expect.poll(() => page.getByRole("alert").allInnerTexts()).toEqual(["the worker could not be loaded"]);
    // The page shows the form without a run. The form's requests start a second worker, which also fails to load.
    await page.waitForFunction("window.workers.made === 2 && window.workers.failed === 2");
    await laboratory.context.unrouteAll();
    await page.evaluate(`location.hash = "#/run?protocol=raft"`);
    await ready(page);
    // The browser may report the failed file itself.
    expect(laboratory.complaints.splice(0).filter((each) => !each.includes("ERR_FAILED"))).toEqual([]);
  });
});
