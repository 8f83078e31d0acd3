/**
 * Checks that each page of the laboratory is accessible, in light and in dark, and on a phone: axe-core has no
 * findings, and no page is wider than the screen.
 *
 * @module-tag long
 */
import { describe, expect, test } from "vitest";
import { complaintsOfAxe, noBrowser } from "./chromium.ts";
import { calm, laboratoryForTests } from "./laboratory-under-test.ts";

/** The pages, each with an element that exists when the page is complete. */
const pages: readonly (readonly [string, string])[] = [
  ["#/gallery", "article"],
  ["#/tour", "[data-tour]"],
  ["#/tour?tour=silence&step=3", "[data-choice]"],
  ["#/tour?tour=majority&step=8", ".look code"],
  ["?embed#/tour", "[data-tour]"],
  ["?embed#/tour?tour=majority&step=8", "[data-property]"],
  ["#/run?scenario=bully-a-highest-crashed&at=9", '[data-testid="state-4"]'],
  ["#/run?protocol=bully&counterexample=1", '[data-stand="broken"]'],
  ["#/check?protocol=bully", '[data-testid="verdict"]'],
  ["#/compare?protocol=maekawa&with=maekawa-sanders&nodes=3&scenario=maekawa-deadlock", ".now"],
  ["#/compare?protocol=bully&with=ring,chang-roberts&nodes=6", "[data-case] + [data-case]"],
  ["#/live", "code"],
  ["#/embed?scenario=raft-leader-crashes", '[data-testid="embed-code"]'],
  ["#/run?protocol=epoch-token-ring&crash=2&options=%7B%22mutex%22:%7B%22idleMs%22:9%7D%7D", ".chip"],
  ["?embed#/run?scenario=raft-leader-crashes&at=37", '[data-testid="headline"][data-step="37"]'],
];

/** Names of elements that extend beyond the screen without a scrolling container. */
const beyond = (width: number): string => `[...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > ${width} + 1)
  .filter((each) => {
    for (let box = each; box !== null; box = box.parentElement)
      if (/auto|scroll|clip|hidden/.test(getComputedStyle(box).overflowX)) return false;
    return true;
  })
  .map((each) => each.tagName + "." + each.getAttribute("class"))`;

const WIDE = { width: 1_280, height: 900 };
const looks = [
  { scheme: "light", viewport: WIDE },
  { scheme: "dark", viewport: WIDE },
  { scheme: "light", viewport: { width: 390, height: 844 } },
] as const;

describe.skipIf(noBrowser !== null)("everyone can use it", () => {
  const laboratory = laboratoryForTests();

  test.each(pages)("%s", async (path, sign) => {
    const page = await laboratory.open(path);
    await page.waitForSelector(sign);
    for (const { scheme, viewport } of looks) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize(viewport);
      await page.waitForSelector(sign);
      await calm(page);
      const look = `${scheme}, ${viewport.width} px wide`;
      expect(await complaintsOfAxe(page), look).toEqual([]);
      const width = () => page.evaluate<number>("document.documentElement.scrollWidth");
      await expect.poll(width, { message: look }).toBeLessThanOrEqual(viewport.width);
      expect(await page.evaluate<string[]>(beyond(viewport.width)), look).toEqual([]);
    }
  });

  test("before the positions of nodes are known, the topology is named after the run", async () => {
    await laboratory.context.addInitScript(`{
      const post = Worker.prototype.postMessage;
      Worker.prototype.postMessage = function (asked) { if (asked.method !== "look") post.call(this, asked); };
    }`);
    const page = await laboratory.open("#/tour?tour=silence&step=3");
    await page.waitForSelector('.topology [role="img"]');
    expect(await complaintsOfAxe(page)).toEqual([]);
  });
});
