/**
 * The pictures of the studio on the README and on docs/multicast.md: real clusters, brought into the state that those pages
 * describe, and photographed. `npm run pictures:studio` takes them anew.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { launch } from "../browser/chromium.ts";
import { ClusterUnderTest, endAll } from "../e2e/cluster-under-test.ts";

const WIDE = 1_440;
/** Below the legend. */
const MARGIN_PX = 24;
/** Until the beginning is off the part of the diagram that is shown. */
const SETTLES_MS = 8_000;
/** What is zoomed to has arrived, and the log tells of it. */
const ARRIVES_MS = 2_000;

async function opened(browser: Browser, cluster: ClusterUnderTest): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: WIDE, height: 1_000 }, colorScheme: "light" });
  await page.goto(cluster.ready.studio as string);
  await page.waitForSelector('[data-testid="node-0"][data-process="running"]');
  await sleep(SETTLES_MS);
  return page;
}

async function photographed(page: Page, image: string): Promise<void> {
  await page.getByRole("button", { name: "Zoom to last" }).click();
  await page.mouse.move(0, 0);
  await sleep(ARRIVES_MS);
  const legend = await page.locator(".legend").boundingBox();
  if (legend === null) throw new Error("expected the page to have a legend");
  const height = Math.ceil(legend.y + legend.height + MARGIN_PX);
  const path = fileURLToPath(new URL(`../../docs/images/${image}`, import.meta.url));
  await page.screenshot({ path, clip: { x: 0, y: 0, width: WIDE, height } });
}

/** Five processes; the leader is killed, and the next one is elected. */
async function election(browser: Browser): Promise<void> {
  const cluster = await ClusterUnderTest.up("--nodes", "5", "--protocol", "bully");
  const page = await opened(browser, cluster);
  await page.waitForSelector('[data-testid="leader"][data-leader="4"]');
  await cluster.act({ type: "kill", node: 4 });
  await page.waitForSelector('[data-testid="leader"][data-leader="3"]');
  await sleep(ARRIVES_MS);
  await photographed(page, "studio.png");
}

/** Two send at nearly the same time; then one node is paused and another sends, which all others hold back. */
async function multicast(browser: Browser): Promise<void> {
  const cluster = await ClusterUnderTest.up("--nodes", "4", "--protocol", "isis");
  const page = await opened(browser, cluster);
  const send = (node: number) => cluster.act({ type: "command", node, command: "send" });
  await cluster.act({ type: "link-conditions", dropRate: 0, delayMs: [40, 150] });
  await send(0);
  await sleep(100);
  await send(2);
  await sleep(500);
  await cluster.act({ type: "pause", node: 3 });
  await send(1);
  await sleep(ARRIVES_MS);
  await photographed(page, "studio-multicast.png");
}

const browser = await launch();
try {
  await election(browser);
  await endAll();
  await multicast(browser);
} finally {
  await endAll();
  await browser.close();
}
