/** Checks the laboratory in a real browser. It must show the results that simulator and checker compute in Node. */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { explore, parseScenario, runScenario } from "../../src/experiment/index.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { actionText } from "../../src/trace/log.ts";
import { stepsOf } from "../../src/trace/steps.ts";
import { Coterie, until } from "../e2e/cluster-under-test.ts";
import { noBrowser, openPage } from "./chromium.ts";
import { headline, laboratoryForTests, ready, settled, stepOf } from "./laboratory-under-test.ts";

if (noBrowser !== null) console.warn(`The browser tests are skipped: ${noBrowser}.`);

/** Returns the event table of a run, row by row. */
function rowsOf(entries: readonly TraceEntry[]): string[] {
  return stepsOf(entries).map(({ indices }) =>
    indices.map((index) => actionText(entries[index] as TraceEntry)).join("; "),
  );
}

const MOST_BYTES = 130_000;

test("the first load is small", () => {
  const page = readFileSync(new URL("../../dist/studio/laboratory.html", import.meta.url), "utf8");
  const named = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, file]) => file as string);
  expect(named.length).toBeGreaterThan(2);
  const sizes = named.map(
    (file) => gzipSync(readFileSync(new URL(`../../dist/studio/${file}`, import.meta.url))).length,
  );
  expect(sizes.reduce((a, b) => a + b, 0)).toBeLessThan(MOST_BYTES);
});

describe.skipIf(noBrowser !== null)("the laboratory", () => {
  const laboratory = laboratoryForTests(["clipboard-read", "clipboard-write"]);

  test("a newcomer sees an election, has it checked, opens the counterexample and shares it", async () => {
    const page = await laboratory.open();
    await page.getByRole("link", { name: /the coordinator crashes/ }).click();
    await ready(page);
    const rows = page.locator("tbody button");
    const entries: TraceEntry[] = [];
    const file = new URL("../../scenarios/bully-a-highest-crashed.yaml", import.meta.url);
    runScenario(parseScenario(readFileSync(file, "utf8"), "bully.yaml").scenario, {
      trace: (entry) => void entries.push(entry),
    });
    expect(await rows.allInnerTexts()).toEqual(rowsOf(entries));

    // Observe it in the page, because a poll from outside may miss it.
    const election = page.waitForFunction(
      `/election/.test(document.querySelector('[data-testid="headline"]').textContent)`,
    );
    await Promise.all([election, page.getByRole("button", { name: "Play" }).click()]);
    await page.getByRole("button", { name: "To the end" }).click();
    await expect.poll(() => headline(page)).toBe("Node 6 leads; 7 is down.");
    await settled(page);
    expect(await page.getByTestId("sent").innerText()).toBe(
      String(entries.filter(({ kind }) => kind === "send").length),
    );

    // This is just before 6 would announce itself.
    await rows.filter({ hasText: "receives answer from 6; is now deferring" }).click();
    await settled(page);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search actions" }).fill("crash node 6");
    await page.getByRole("option", { name: "Crash node 6" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-testid="state-6"][data-condition="down"]');
    await page.getByRole("button", { name: "To the end" }).click();
    await expect.poll(() => headline(page)).toBe("Node 5 leads; 6 and 7 are down.");

    await page.getByRole("navigation").getByRole("link", { name: "check" }).click();
    const found = explore({ protocol: "bully" });
    await page.waitForSelector('[data-testid="verdict"][data-verdict="violated"]');
    expect(await page.getByTestId("states").getAttribute("data-states")).toBe(String(found.states));
    await page.getByRole("link", { name: "Open the counterexample" }).click();
    await ready(page); // The Check page also shows violations.
    await page.waitForSelector('[data-stand="broken"]');
    expect(await page.locator("tbody button").allInnerTexts()).toEqual(rowsOf(found.trace?.entries as TraceEntry[]));

    await settled(page);
    const [shown, step] = [await headline(page), await stepOf(page)];
    await page.getByRole("button", { name: "Copy link" }).click();
    const copied = () => page.evaluate<string>("navigator.clipboard.readText()");
    await expect.poll(copied).toContain("#/run?");
    const link = await copied();
    const stranger = await laboratory.browser.newContext();
    const other = await openPage(stranger, link, laboratory.complaints);
    await expect.poll(() => headline(other)).toBe(shown);
    expect(await stepOf(other)).toBe(step);
    expect(await other.locator("tbody button").allInnerTexts()).toEqual(
      await page.locator("tbody button").allInnerTexts(),
    );
    await stranger.close();
  });

  test("the checker counts the same states as in Node", { tags: ["long"] }, async () => {
    const page = await laboratory.open("#/check?protocol=ricart-agrawala");
    await page.waitForSelector('[data-testid="verdict"][data-verdict="holds"]');
    const { states } = explore({ protocol: "ricart-agrawala" });
    expect(await page.getByTestId("states").getAttribute("data-states")).toBe(String(states));
  });

  test("the checker finds the same counterexample as in Node", { tags: ["long"] }, async () => {
    const found = explore({ protocol: "ricart-agrawala", crashes: 1 });
    expect(found.verdict).toBe("violated");
    const page = await laboratory.open("#/check?protocol=ricart-agrawala&crashes=1");
    await page.waitForSelector('[data-testid="verdict"][data-verdict="violated"]');
    expect(await page.getByTestId("states").getAttribute("data-states")).toBe(String(found.states));
    await page.getByRole("link", { name: "Open the counterexample" }).click();
    await ready(page); // The Check page also shows violations.
    await page.waitForSelector('[data-stand="broken"]');
    expect(await page.locator("tbody button").allInnerTexts()).toEqual(rowsOf(found.trace?.entries as TraceEntry[]));
  });

  test("one cursor by keyboard; a crash at the cursor makes another run, and Undo reverts it", async () => {
    const page = await laboratory.open("#/run?protocol=ricart-agrawala&nodes=3");
    await ready(page);
    await page.locator("h1").click();
    expect(await stepOf(page)).toBe(2); // All three nodes have started.
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    expect(await stepOf(page)).toBe(1);
    await page.keyboard.press("End");
    await expect.poll(() => headline(page)).toBe("No node is inside, and no node waits.");
    await page.keyboard.press("Home");
    expect(await stepOf(page)).toBe(-1);
    for (let presses = 0; presses < 6; presses++) await page.keyboard.press("ArrowRight");
    const row = page.getByTestId("state-2").locator(".row");
    if ((await row.getAttribute("aria-expanded")) === "false") await row.click();
    await page.getByRole("button", { name: "Crash node 2" }).click();
    await page.waitForSelector('[data-testid="state-2"][data-condition="down"]');
    await page.getByRole("button", { name: "To the end" }).click();
    // No node enters, because the reply of the crashed node never arrives.
    await expect.poll(() => headline(page)).toMatch(/^No node is inside; .*wait.*2 is down\.$/);
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await page.waitForSelector('[data-testid="state-2"][data-condition="up"]');
    await expect.poll(() => stepOf(page)).toBe(5); // The step at which node 2 crashes.
  });

  test("`coterie studio` serves it under its own content security policy; invalid words are reported", {
    tags: ["long"],
  }, async () => {
    const studio = new Coterie("studio", "--port", "0", "--json");
    const { studio: served } = await until<{ studio: string }>(
      "the laboratory is served",
      () => (studio.stdout.includes("\n") ? JSON.parse(studio.stdout) : null),
      studio,
    );
    const page = await openPage(laboratory.context, `${served}#/run?protocol=bully&nodes=0`, laboratory.complaints);
    await expect.poll(() => page.getByRole("alert").innerText()).toMatch(/--nodes/);
    await page.goto(`${served}#/run?protocol=bully`);
    await ready(page);
    await page.close();
    studio.signal("SIGINT");
    await studio.finished;
  });
});
