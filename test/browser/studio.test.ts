import { describe, expect, test } from "vitest";
import { noBrowser } from "./chromium.ts";
import { drawn } from "./drawn.ts";
import { StudioUnderTest } from "./studio-under-test.ts";

if (noBrowser !== null) console.warn(`The browser tests are skipped: ${noBrowser}.`);

describe.skipIf(noBrowser !== null)("the studio", () => {
  const studio = new StudioUnderTest();
  const opened = async () => {
    const cluster = await studio.open(["--nodes", "5"]);
    await leads(4);
    return cluster;
  };
  const leads = (node: number) => studio.page.waitForSelector(`[data-testid="leader"][data-leader="${node}"]`);

  test("shows the leader; Kill ends its process; the next one leads; the election's messages are arrows", async () => {
    const cluster = await opened();
    await studio.page.waitForSelector('[data-testid="node-4"][data-process="running"][data-role="leader"]');

    await studio.page.getByRole("button", { name: "Kill node 4" }).click();
    await leads(3);
    await studio.page.waitForSelector('[data-testid="node-4"][data-process="exited"]');
    await cluster.agreed(3, [0, 1, 2, 3]); // Wait until members follow the leader.

    const coordinators = async () =>
      (await drawn(studio.page))?.messages.filter(({ type }) => type === "coordinator").length;
    await expect.poll(coordinators).toBeGreaterThanOrEqual(3);
    await expect.poll(() => studio.log()).toMatch(/node 4 was killed/i);

    await studio.page.getByRole("button", { name: "Restart node 4" }).click();
    await leads(4);
  });

  test("Pause stops a process and Resume continues it, by keyboard alone", async () => {
    await opened();
    await studio.page.getByRole("button", { name: "Pause node 4" }).focus();
    await studio.page.keyboard.press("Enter");
    await studio.page.waitForSelector('[data-testid="node-4"][data-process="paused"]');
    await leads(3);
    await studio.page.getByRole("button", { name: "Resume node 4" }).focus();
    await studio.page.keyboard.press("Enter");
    await leads(4);
  });

  test("a split has a leader on each side, and one again when it is healed", { tags: ["long"] }, async () => {
    const cluster = await opened();
    await cluster.act({
      type: "split",
      groups: [
        [0, 1, 2],
        [3, 4],
      ],
    });
    await studio.page.waitForSelector('[data-testid="leader"][data-leader="split"]');
    await studio.page.getByRole("button", { name: /heal/i }).first().click();
    await leads(4);
  });

  test("reports that the cluster has ended", { tags: ["long"] }, async () => {
    const cluster = await opened();
    studio.page.removeAllListeners("console"); // The browser reports each refused connection.
    cluster.signal("SIGINT");
    await cluster.finished;
    await expect.poll(() => studio.page.getByRole("alert").first().innerText()).not.toBe("");
  });

  test("a multicast shows held-back messages at their node and below its life line, and marks deliveries differently", async () => {
    const cluster = await studio.open(["--nodes", "3", "--protocol", "isis"]);
    const { page } = studio;

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
    await expect.poll(() => studio.log()).toMatch(/delivers? 0\.1, “greeting 1”/);
  });
});
