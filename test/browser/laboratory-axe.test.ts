/**
 * axe-core finds nothing to complain of on any page of the laboratory, in light and in dark, and on a phone.
 *
 * @module-tag long
 */
import type { Server } from "node:http";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { complaintsOfAxe } from "./axe.ts";
import { launch, noBrowser } from "./chromium.ts";
import { calm, openPage, staticHost } from "./laboratory-under-test.ts";

/** Each with what is there when the page is complete. */
const pages: readonly (readonly [string, string])[] = [
  ["#/gallery", "article"],
  ["#/tour", "[data-tour]"],
  ["#/tour?tour=silence&step=3", "[data-choice]"],
  ["#/tour?tour=majority&step=8", ".look code"],
  ["?embed#/tour", "[data-tour]"],
  ["#/run?scenario=bully-a-highest-crashed&at=9", '[data-testid="state-4"]'],
  ["#/run?protocol=bully&counterexample=1", '[data-stand="broken"]'],
  ["#/check?protocol=bully", '[data-testid="verdict"]'],
  ["#/compare?protocol=maekawa&with=maekawa-sanders&nodes=3&scenario=maekawa-deadlock", ".now"],
  ["#/live", "code"],
  ["#/embed?scenario=raft-leader-crashes", '[data-testid="embed-code"]'],
  ["#/run?protocol=epoch-token-ring&crash=2&options=%7B%22mutex%22:%7B%22idleMs%22:9%7D%7D", ".chip"],
  ["?embed#/run?scenario=raft-leader-crashes&at=37", '[data-testid="headline"][data-step="37"]'],
];

const WIDE = { width: 1_280, height: 900 };
const looks = [
  { scheme: "light", viewport: WIDE },
  { scheme: "dark", viewport: WIDE },
  { scheme: "light", viewport: { width: 390, height: 844 } },
] as const;

describe.skipIf(noBrowser !== null)("everyone can use it", () => {
  let browser: Browser;
  let host: Server;
  let url: string;

  beforeAll(async () => {
    browser = await launch();
    ({ server: host, url } = await staticHost());
  });
  afterAll(async () => {
    await browser?.close();
    host?.close();
  });

  test.each(pages.flatMap(([path, sign]) => looks.map((look) => ({ path, sign, ...look }))))(
    "$path in $scheme, $viewport.width px wide",
    async ({ path, sign, scheme, viewport }) => {
      const context = await browser.newContext({ colorScheme: scheme, viewport });
      const page = await openPage(context, `${url}${path}`, []);
      await page.waitForSelector(sign);
      await calm(page);
      expect(await complaintsOfAxe(page)).toEqual([]);
      await context.close();
    },
  );

  test("before it is known where the nodes stand, the topology is called after the run", async () => {
    const context = await browser.newContext({ viewport: WIDE });
    await context.addInitScript(`{
      const post = Worker.prototype.postMessage;
      Worker.prototype.postMessage = function (asked) { if (asked.method !== "look") post.call(this, asked); };
    }`);
    const page = await openPage(context, `${url}#/tour?tour=silence&step=3`, []);
    await page.waitForSelector('.topology [role="img"]');
    expect(await complaintsOfAxe(page)).toEqual([]);
    await context.close();
  });
});
