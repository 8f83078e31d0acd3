/**
 * Checks invalid links, the cursor after undo, and clicks on nodes of the topology, in a real browser.
 *
 * @module-tag long
 */
import { describe, expect, test } from "vitest";
import { noBrowser } from "./chromium.ts";
import { hashOf, laboratoryForTests, ready, settled, stepOf } from "./laboratory-under-test.ts";

const senseless: readonly (readonly [string, RegExp])[] = [
  ["#/run?protocol=raft&nodes=1000000000", /^expected --nodes to be a whole number from 1 to 100/],
  ["#/run?protocol=raft&nodes=1e9&crash=1,1", /^expected --nodes to be a whole number from 1 to 100/],
  ["#/check?protocol=raft&nodes=1e9", /^expected --nodes to be a whole number from 1 to 100/],
  ["#/fork?protocol=raft", /^No page is called “fork”\. The pages are gallery, run, /],
  ["#/run?protocol=bully&fork=12+explode+3", /^No action is called “explode”\. The actions are crash, /],
  ["#/run?scenario=bully-z", /^No scenario is called “bully-z”\./],
  ["#/embed?protocol=rafts", /^No protocol is called “rafts”\./],
  ["#/tour?tour=silense", /^No tour is called “silense”\. Choose one of these\.$/],
  ["#/tour?tour=one-lap&step=99", /^Step “99” does not exist: this tour has steps 1 to \d+\.$/],
];

describe.skipIf(noBrowser !== null)("the laboratory", () => {
  const laboratory = laboratoryForTests();

  test("returns the cursor to the step of an undone action, and keeps lists of actions in their column", async () => {
    const page = await laboratory.open("#/run?scenario=bully-a-highest-crashed&protocol=bully&at=15");
    await ready(page);
    for (const act of [
      "crash node 6",
      "pause node 5",
      "pause node 4",
      "pause node 3",
      "pause node 2",
      "pause node 1",
    ]) {
      await settled(page);
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search actions" }).fill(act);
      await page.locator("#palette-list li").first().waitFor();
      await page.keyboard.press("Enter");
      await page.locator(`[data-fork][aria-current]`, { hasText: act }).waitFor();
    }
    await settled(page);
    const beyond = await page.evaluate<string[]>(`(() => {
      const section = document.querySelector('[aria-labelledby="forks-title"]');
      const { right } = section.getBoundingClientRect();
      return [...section.querySelectorAll("li, button")]
        .filter((each) => each.getBoundingClientRect().right > right + 1 || each.scrollWidth > each.clientWidth + 1)
        .map((each) => each.textContent);
    })()`);
    expect(beyond).toEqual([]);
    for (let acts = 5; acts >= 0; acts--) {
      await page.keyboard.press("Control+z");
      await expect.poll(() => page.locator("[data-fork]").count()).toBe(acts === 0 ? 0 : acts + 1);
      await settled(page);
    }
    expect(await stepOf(page)).toBe(15);
    expect(await hashOf(page)).toContain("at=15");
  });

  test("opens a node's state by a click in the topology, and its actions by a right click", async () => {
    const page = await laboratory.open("#/run?protocol=bully&nodes=4&at=6");
    await ready(page);
    await settled(page);
    const node = page.locator('[data-topology] [data-node="2"]');
    await node.click();
    await expect.poll(() => node.getAttribute("aria-pressed")).toBe("true");
    await page.getByTestId("state-2").getByRole("button", { name: "Crash node 2" }).waitFor();
    await node.click({ button: "right" });
    await page.getByRole("menuitem", { name: "Crash node 2" }).click();
    await page.waitForSelector('[data-testid="state-2"][data-condition="down"]');
  });

  test("has a headline at every moment while a run is computed", async () => {
    await laboratory.context.addInitScript(`
      window.bare = [];
      new MutationObserver(() => {
        for (const each of document.querySelectorAll("h1")) if (each.textContent.trim() === "") window.bare.push(location.hash);
      }).observe(document, { childList: true, subtree: true, characterData: true });
    `);
    const page = await laboratory.open("#/run?protocol=raft&nodes=3");
    await ready(page);
    await settled(page);
    await page.evaluate(`location.hash = "#/run?protocol=bully&nodes=4"`);
    await page.waitForFunction(`document.title.startsWith("bully")`);
    await settled(page);
    expect(await page.evaluate("window.bare")).toEqual([]);
    expect(await page.locator("h1").count()).toBe(1);
  });

  test("reports the invalid part of a link", async () => {
    const page = await laboratory.open("#/gallery");
    for (const [place, sentence] of senseless) {
      await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
      await expect.poll(() => page.getByRole("alert").allInnerTexts()).toContainEqual(expect.stringMatching(sentence));
    }
  });

  test("reports that a chosen file has changed, and how to continue", async () => {
    await laboratory.context.addInitScript(`
      Blob.prototype.text = () => Promise.reject(new DOMException("typically due to permission problems", "NotReadableError"));
    `);
    const page = await laboratory.open("#/gallery");
    const file = { name: "live.jsonl", mimeType: "application/jsonl", buffer: Buffer.from("{}") };
    await page.getByLabel("Open a recording").setInputFiles(file);
    await expect
      .poll(() => page.getByRole("alert").innerText())
      .toMatch(/^live\.jsonl: the file changed after it was chosen, .* open a copy, or choose it again/);
  });
});
