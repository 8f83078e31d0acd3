/**
 * Checks the other pages of the laboratory in a real browser.
 *
 * @module-tag long
 */
import { describe, expect, test } from "vitest";
import { simulate } from "../../src/experiment/index.ts";
import { noBrowser } from "./chromium.ts";
import { hashOf, laboratoryForTests, ready, stepOf } from "./laboratory-under-test.ts";

describe.skipIf(noBrowser !== null)("the laboratory's other pages", () => {
  const laboratory = laboratoryForTests(["clipboard-read", "clipboard-write"]);

  test("Compare: one time axis for all, and the link names the compared protocols", async () => {
    const page = await laboratory.open("#/compare?protocol=bully&with=ring&nodes=4");
    for (const protocol of ["bully", "ring"]) {
      const total = String(simulate({ protocol, nodes: 4 }).messages.total);
      expect(await page.getByTestId(`total-${protocol}`).innerText()).toBe(total);
      await expect.poll(() => page.getByTestId(`sent-${protocol}`).innerText()).toBe(total);
    }
    // Both use one axis, so the same time has the same position.
    const ticks = () =>
      page.evaluate<string[]>(`[...document.querySelectorAll(".view canvas:first-child")]
        .flatMap(({ picture }) => picture ? [JSON.stringify(picture.axis.ticks)] : [])`);
    await expect.poll(async () => new Set(await ticks()).size).toBe(1);
    expect((await ticks()).length).toBe(2);
    await page.getByRole("button", { name: "To the start" }).click();
    await expect.poll(() => page.getByTestId("sent-ring").innerText()).toBe("0");
    await page.getByLabel("Add a protocol").selectOption("chang-roberts");
    await page.waitForSelector('[data-case="chang-roberts"] td');
    await page.getByRole("button", { name: "Remove ring" }).click();
    await page.waitForSelector('[data-case="ring"]', { state: "detached" });
    expect(await hashOf(page)).toMatch(/^#\/compare\?protocol=bully&nodes=4&with=chang-roberts/);
  });

  test("a link with only a scenario knows its protocol: in the set-up, in Check and in Compare", async () => {
    const page = await laboratory.open("#/run?scenario=raft-as-lectured");
    await ready(page);
    expect(
      await page
        .locator("form label", { hasText: /^protocol/ })
        .locator("select")
        .inputValue(),
    ).toBe("raft");
    await expect
      .poll(() =>
        page
          .locator("form label", { hasText: /^variant/ })
          .locator("select")
          .inputValue(),
      )
      .toBe("lecture");
    const pages = page.getByRole("navigation");
    const leadsTo = (name: string) => pages.getByRole("link", { name }).getAttribute("href");
    expect(await leadsTo("check")).toBe("#/check?protocol=raft&variant=lecture");
    await page.getByRole("link", { name: "Compare", exact: true }).last().click();
    await page.waitForSelector('[data-case="raft"] .now');
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("Check shows its counterexample as soon as it ends, and finds the fewest faults at a button", async () => {
    const page = await laboratory.open("#/check?protocol=ricart-agrawala&nodes=2");
    await page.waitForSelector('[data-testid="verdict"][data-verdict="holds"]');
    expect(await page.getByTestId("counterexample").count()).toBe(0);
    await page.getByRole("link", { name: "Fewest faults that break it" }).click();
    await page.waitForSelector('[data-testid="verdict"][data-verdict="violated"]');
    expect(await page.getByTestId("faults").innerText()).toMatch(/^One fault is enough/);
    const found = page.getByTestId("counterexample");
    await found.locator('[data-stand="broken"]').waitFor();
    await found.locator(".view canvas").first().waitFor();
    await page.keyboard.press("Home");
    await expect.poll(() => stepOf(page)).toBe(-1);
  });

  test("a key opens the text of a claim, changes come first, and names are not cut off", async () => {
    const page = await laboratory.open("#/run?scenario=chang-roberts-ring-of-seven&at=20");
    await ready(page);
    const claim = page.getByRole("button", { name: /^E1 safety/ });
    await claim.focus();
    await page.keyboard.press("Enter");
    expect(await page.getByTestId("claim").innerText()).toMatch(/^E1 safety: .+\.$/);
    const state = page.getByTestId("state-24").locator("dl div");
    await expect.poll(() => state.first().getAttribute("class")).toMatch(/new/);
    const cut = await page.evaluate<number>(`[...document.querySelectorAll(".names text")]
      .filter((each) => each.getBoundingClientRect().left < each.ownerSVGElement.getBoundingClientRect().left).length`);
    expect(cut).toBe(0);
    await page.goto(`${laboratory.url}#/run?protocol=ricart-agrawala&nodes=3&at=8`);
    await expect.poll(() => page.locator("summary", { hasText: "Client" }).count()).toBe(1);
  });

  test("Why? walks back from the violation along its causes, by click and by key", async () => {
    const page = await laboratory.open("#/run?protocol=bully&counterexample=1");
    await page.waitForSelector('[data-stand="broken"]');
    const broken = await stepOf(page);
    await page.getByRole("button", { name: /^Why is .* broken\?$/ }).click();
    const panel = page.getByTestId("why");
    expect(await panel.innerText()).toMatch(/This breaks “/);
    await page.keyboard.press("w");
    await expect.poll(() => panel.getAttribute("data-place")).toBe("1");
    expect(await stepOf(page)).toBeLessThan(broken);
    expect(await panel.innerText()).toMatch(/Node \d received its |This is the previous step of node \d\./);
    await page.keyboard.press("Shift+W");
    await expect.poll(() => stepOf(page)).toBe(broken);
    await page.keyboard.press("Escape");
    await expect.poll(() => panel.count()).toBe(0);
  });

  test("the topology shows the moment of the cursor: three that wait for each other, a token that circulates", async () => {
    const page = await laboratory.open("#/run?scenario=maekawa-deadlock");
    await ready(page);
    const picture = page.locator('[data-topology="quorums"] svg');
    await expect.poll(() => picture.getAttribute("aria-label")).toContain("1, 2 and 3 wait for each other");
    expect(await picture.locator(".hull.waiting").count()).toBe(3);
    expect(await picture.locator(".wait.dead").count()).toBe(3);
    await page.getByRole("button", { name: "To the start" }).click();
    await expect.poll(() => picture.locator(".wait").count()).toBe(0);
    await page.goto(`${laboratory.url}#/run?scenario=token-ring-two-want-in&at=3`);
    const ring = page.locator('[data-topology="ring"] svg');
    await expect.poll(() => ring.locator(".token").count()).toBe(1);
  });

  test("the position of the cursor is not saved in the address of another pending run", async () => {
    const page = await laboratory.open("#/run?protocol=ring&nodes=3&at=0");
    await ready(page);
    // The address changes immediately, but the page is notified later.
    await page.evaluate(`
      location.hash = "#/run?protocol=ricart-agrawala&nodes=3";
      [...document.querySelectorAll("button")].find((button) => button.textContent === "Copy link").click();
    `);
    expect(await hashOf(page)).not.toContain("at=0");
    await expect.poll(() => stepOf(page)).toBe(2);
  });

  test("a tour asks for a prediction, and the run answers", async () => {
    const page = await laboratory.open("#/tour");
    await page.getByRole("link", { name: /Silence is an answer/ }).click();
    for (const step of ["1", "2"]) {
      await page.waitForSelector(`[data-testid="tour-step"][data-step="${step}"]`);
      await page.getByRole("button", { name: "Next" }).click();
    }
    await page.locator('[data-choice="c"]').click();
    await page.waitForSelector('[data-testid="answer"][data-right="b"].wrong');
    expect(await page.getByTestId("headline").innerText()).toMatch(
      /^Nodes 4 and 5 hold an election, while 6 leads; 7 is down/,
    );
    await page.getByRole("button", { name: "Back", exact: true }).click();
    await page.locator('[data-choice="b"]').click();
    await page.waitForSelector('[data-testid="answer"][data-right="b"]:not(.wrong)');
  });

  test("an embedded run is bare, and leads to the whole page", async () => {
    const page = await laboratory.open("?embed#/run?scenario=bully-a-highest-crashed");
    await page.getByRole("button", { name: "To the end" }).click();
    await expect.poll(() => page.getByTestId("headline").innerText()).toBe("Node 6 leads; 7 is down.");
    expect(await page.getByRole("navigation").count()).toBe(0);
    const link = await page.getByRole("link", { name: "Open in the laboratory" }).getAttribute("href");
    expect(link).toMatch(/laboratory\.html#\/run\?scenario=bully-a-highest-crashed&at=\d+$/);
  });

  test("a run is saved as a trace file, and opened again; a bad file gives one error", async () => {
    const page = await laboratory.open("#/run?protocol=ring&nodes=4");
    await page.waitForSelector('[data-testid="state-0"]');
    const rows = await page.locator("tbody button").allInnerTexts();
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save trace" }).click(),
    ]);
    await page.goto(`${laboratory.url}#/gallery`);
    await page.waitForSelector("article"); // The saved run is no longer shown.
    await page.getByLabel("Open a recording").setInputFiles(await saved.path());
    await page.waitForSelector('[data-testid="state-0"]');
    expect(await page.locator("tbody button").allInnerTexts()).toEqual(rows);
    await page.getByLabel("Open a recording").setInputFiles({
      name: "bad.jsonl",
      mimeType: "application/jsonl",
      buffer: Buffer.from("nothing"),
    });
    await expect.poll(() => page.getByRole("alert").innerText()).toMatch(/^bad\.jsonl: line 1: /);
  });
});
