/**
 * axe-core finds nothing to complain of on any page of the laboratory, in light and in dark.
 *
 * @module-tag long
 */
import type { Server } from "node:http";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { complaintsOfAxe } from "./axe.ts";
import { launch, noBrowser } from "./chromium.ts";
import { openPage, staticHost } from "./laboratory-under-test.ts";

/** Each with what is there when the page is complete. */
const pages: readonly (readonly [string, string])[] = [
  ["#/gallery", "article"],
  ["#/tour", "[data-tour]"],
  ["#/tour?tour=silence&step=3", "[data-choice]"],
  ["#/tour?tour=majority&step=8&lang=ru", ".look code"],
  ["?embed#/tour", "[data-tour]"],
  ["#/run?scenario=bully-a-highest-crashed&at=9", '[data-testid="state-4"]'],
  ["#/run?protocol=bully&counterexample=1", '[data-stand="broken"]'],
  ["#/check?protocol=bully", '[data-testid="verdict"]'],
  ["#/compare?protocol=maekawa&with=maekawa-sanders&nodes=3&scenario=maekawa-deadlock", ".now"],
  ["?embed#/run?scenario=raft-leader-crashes&at=37", '[data-testid="headline"][data-step="37"]'],
];

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

  test.each(pages.flatMap(([path, sign]) => (["light", "dark"] as const).map((scheme) => ({ path, sign, scheme }))))(
    "$path in $scheme",
    async ({ path, sign, scheme }) => {
      const context = await browser.newContext({ colorScheme: scheme, viewport: { width: 1_280, height: 900 } });
      const page = await openPage(context, `${url}${path}`, []);
      await page.waitForSelector(sign);
      expect(await complaintsOfAxe(page)).toEqual([]);
      await context.close();
    },
  );
});
