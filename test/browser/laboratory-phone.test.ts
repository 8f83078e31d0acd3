/**
 * On a phone no page of the laboratory is wider than the screen: nobody has to scroll sideways to read it.
 *
 * @module-tag long
 */
import { describe, expect, test } from "vitest";
import { noBrowser } from "./chromium.ts";
import { laboratoryForTests } from "./laboratory-for-tests.ts";
import { calm } from "./laboratory-under-test.ts";

const WIDTH = 390;

/** Each with what is there when the page is complete. */
const pages: readonly (readonly [string, string])[] = [
  ["#/gallery", "article"],
  ["#/tour", "[data-tour]"],
  ["#/tour?tour=silence&step=3", "[data-property]"],
  ["?embed#/tour?tour=majority&step=8", "[data-property]"],
  ["#/run?scenario=raft-leader-crashes", "[data-property]"],
  ["#/run?protocol=bully", "[data-property]"],
  ["#/run?protocol=bully&counterexample=1", '[data-stand="broken"]'],
  ["#/check?protocol=bully", '[data-testid="verdict"]'],
  ["#/compare?protocol=bully&with=ring,chang-roberts&nodes=6", "[data-case] + [data-case]"],
  ["#/live", "code"],
  ["#/embed?scenario=raft-leader-crashes", '[data-testid="embed-code"]'],
  ["#/run?protocol=epoch-token-ring&crash=2&options=%7B%22mutex%22:%7B%22idleMs%22:9%7D%7D", ".chip"],
  ["?embed#/run?scenario=raft-leader-crashes", '[data-testid="headline"]'],
];

describe.skipIf(noBrowser !== null)("at 390 px", () => {
  const laboratory = laboratoryForTests();

  test.each(pages)("%s fits", async (path, sign) => {
    const page = await laboratory.open();
    await page.setViewportSize({ width: WIDTH, height: 844 });
    await page.goto("about:blank");
    await page.goto(`${laboratory.url}${path}`);
    await page.waitForSelector(sign);
    await calm(page);
    const width = () => page.evaluate<number>("document.documentElement.scrollWidth");
    await expect.poll(width).toBeLessThanOrEqual(WIDTH);
    /** What reaches beyond the screen though nothing around it scrolls, named so that it can be found. */
    const beyond = await page.evaluate<string[]>(`[...document.querySelectorAll("body *")]
      .filter((each) => each.getBoundingClientRect().right > ${WIDTH} + 1)
      .filter((each) => {
        for (let box = each; box !== null; box = box.parentElement)
          if (/auto|scroll|clip|hidden/.test(getComputedStyle(box).overflowX)) return false;
        return true;
      })
      .map((each) => each.tagName + "." + each.getAttribute("class"))`);
    expect(beyond).toEqual([]);
  });
});
