/**
 * Checks the set-up forms: an algorithm's own options, crashed nodes, undone actions, and the links to frames.
 *
 * @module-tag long
 */
import { describe, expect, test } from "vitest";
import { protocolNamed } from "../../src/protocols/index.ts";
import { TestedLaboratory } from "../../studio/src/laboratory/engine/laboratory-under-test.ts";
import { noBrowser } from "./chromium.ts";
import { hashOf, laboratoryForTests, ready } from "./laboratory-under-test.ts";

describe.skipIf(noBrowser !== null)("the laboratory's set-up", () => {
  const laboratory = laboratoryForTests(["clipboard-read", "clipboard-write"]);

  /** Returns the fork in which node 3 crashes just after an election has been called, with all nodes running. */
  async function crashOf3(): Promise<string> {
    const { steps } = await new TestedLaboratory().run({ protocol: "bully", nodes: "4" });
    return `${steps[4]?.entries} crash 3`;
  }

  test("an option of the algorithm is a field, a crashed node a chip; both go into the link", async () => {
    const page = await laboratory.open("#/run?protocol=epoch-token-ring&nodes=3&request=0&crash=1,2");
    await ready(page);
    await page.getByRole("button", { name: "Undo crash of node 1" }).click();
    await page.getByText("Algorithm options").click();
    await page.getByLabel(/^lease/).fill("900");
    await page.getByLabel(/^lease/).press("Tab");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await expect.poll(() => hashOf(page)).toMatch(/crash=2(&|$)/);
    expect(decodeURIComponent(await hashOf(page))).toContain('options={"mutex":{"leaseMs":900}}');
    // The given value appears in its field again.
    await ready(page);
    await expect.poll(() => page.getByLabel(/^lease/).inputValue()).toBe("900");
  });

  test("an action is a chip: it can be undone, and its run stays as a branch", async () => {
    const fork = await crashOf3();
    const page = await laboratory.open(`#/run?protocol=bully&nodes=4&fork=${encodeURIComponent(fork)}`);
    await ready(page);
    await page.getByRole("button", { name: "Undo: crash node 3" }).click();
    await expect.poll(() => hashOf(page)).not.toMatch(/fork=/);
    expect(decodeURIComponent(await hashOf(page)).replaceAll("+", " ")).toContain(`branches=${fork}`);
    await page.waitForSelector(`button[data-fork="${fork}"]`);
  });

  test("the gallery has every guarantee of an algorithm", async () => {
    const page = await laboratory.open("#/gallery");
    const guarantees = protocolNamed("raft")
      .model()
      .properties.map(({ claim }) => claim);
    const card = page.locator('[data-protocol="raft"]');
    await card.getByText(/guarantees$/).click();
    const listed = await card.locator("details[open] li").allInnerTexts();
    expect(listed.toSorted()).toEqual(guarantees.toSorted());
  });

  test("Embed has the frame of the run with its actions; Live explains how to use real processes", async () => {
    const fork = await crashOf3();
    const page = await laboratory.open(`#/run?protocol=bully&nodes=4&fork=${encodeURIComponent(fork)}`);
    await ready(page);
    const pages = page.getByRole("navigation");
    await pages.getByRole("link", { name: "embed" }).click();
    const code = await page.getByTestId("embed-code").innerText();
    expect(code).toContain(
      `${laboratory.url}?embed#/run?protocol=bully&amp;nodes=4&amp;fork=${fork.replaceAll(" ", "+")}`,
    );
    await page.getByRole("button", { name: "Copy the code" }).click();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(code);
    await pages.getByRole("link", { name: "live" }).click();
    await page.getByText("npx coterie up --nodes 5 --protocol bully").waitFor();
  });
});
