import { describe, expect, test } from "vitest";
import type { ClusterUnderTest } from "../e2e/cluster-under-test.ts";
import { complaintsOfAxe, noBrowser } from "./chromium.ts";
import { StudioUnderTest } from "./studio-under-test.ts";

const PHONE = { width: 390, height: 844 };
const WIDE = { width: 1440, height: 1000 };
/** The minimum target size in px: WCAG 2.2, 2.5.8. */
const TARGET = 24;

/**
 * Controls smaller than that, except in the diagram, which the log describes as text, and the links of the ring, whose
 * actions are also listed below it.
 */
const SMALL_TARGETS = `[...document.querySelectorAll("button, select, input, summary, a, [role=button], [role=menuitem]")]
  .filter((element) => element.closest(".time") === null)
  .map((element) => ({ element, box: element.getBoundingClientRect() }))
  .filter(({ box }) => box.width > 0 && (box.width < ${TARGET} || box.height < ${TARGET}))
  .map(({ element, box }) => (element.getAttribute("aria-label") ?? element.textContent) + ": " + box.width + " by " + box.height)`;

describe.skipIf(noBrowser !== null)("everyone can use the live page", () => {
  const studio = new StudioUnderTest();

  async function opened(viewport: typeof PHONE, ...words: string[]): Promise<ClusterUnderTest> {
    const cluster = await studio.open(words, viewport);
    await studio.page.waitForSelector("canvas");
    return cluster;
  }

  /** Causes events so that the page shows everything that appears only sometimes. */
  async function disturbed(cluster: ClusterUnderTest): Promise<void> {
    await cluster.act({ type: "kill", node: 0 });
    await cluster.act({ type: "pause", node: 1 });
    await cluster.act({ type: "cut", nodes: [2, 3] });
    await studio.page.waitForSelector('[data-testid="node-0"][data-process="exited"]');
    await studio.page.waitForSelector('[data-testid="node-1"][data-process="paused"]');
    await studio.page.waitForSelector('[data-cut="both"]');
    await studio.page.getByRole("button", { name: "Send command to node 2" }).click();
    await studio.page.getByRole("menuitem").first().waitFor();
  }

  test.each([["chang-roberts"], ["raft"]])(
    "on a phone %s shows its diagram first, no wider than the screen",
    { tags: ["long"] },
    async (protocol) => {
      const cluster = await opened(PHONE, "--nodes", "5", "--protocol", protocol);
      const top = async (selector: string) =>
        (await studio.page.locator(selector).first().boundingBox())?.y ?? Number.NaN;
      expect(await top("canvas")).toBeLessThan(PHONE.height / 2);
      expect(await top("canvas")).toBeLessThan(await top('[data-testid="node-0"]'));
      expect(await top('[data-testid="node-4"]')).toBeLessThan(await top('[data-testid="log"]'));

      await disturbed(cluster);
      expect(await studio.page.evaluate("document.documentElement.scrollWidth")).toBe(PHONE.width);
      expect(await studio.page.evaluate(SMALL_TARGETS)).toEqual([]);
    },
  );

  test.each([
    ["bully", WIDE],
    ["raft", WIDE],
    ["pbft", WIDE],
    ["isis", WIDE],
    ["maekawa", WIDE],
    ["chang-roberts", PHONE],
  ] as const)("axe-core finds nothing: %s, in light and in dark", { tags: ["long"] }, async (protocol, viewport) => {
    const cluster = await opened(viewport, "--nodes", "4", "--protocol", protocol);
    for (const isDisturbed of [false, true]) {
      if (isDisturbed) await disturbed(cluster);
      for (const colorScheme of ["light", "dark"] as const) {
        await studio.page.emulateMedia({ colorScheme });
        expect(await complaintsOfAxe(studio.page), `${colorScheme}${isDisturbed ? ", disturbed" : ""}`).toEqual([]);
      }
    }
  });
});
