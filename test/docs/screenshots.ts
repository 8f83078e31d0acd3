/**
 * Takes the screenshots for README and docs: the laboratory with one protocol of each family, wide and on a phone,
 * light and dark, and the live page of two real clusters. `npm run screenshots` takes all of them, or those with the
 * given names.
 */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { launch } from "../browser/chromium.ts";
import { ready, settled, staticHost } from "../browser/laboratory-under-test.ts";
import { ClusterUnderTest, endAll } from "../e2e/cluster-under-test.ts";
import { PATIENCE_MS } from "../patience.ts";
import { smallPng } from "./small-png.ts";

interface Picture {
  readonly image: string;
  readonly hash: string;
  readonly scheme: "light" | "dark";
  readonly size: { readonly width: number; readonly height: number };
}

const WIDE = { width: 1_440, height: 900 };
const PHONE = { width: 390, height: 844 };

const pictures: readonly Picture[] = [
  { image: "gallery", hash: "#/gallery", scheme: "light", size: WIDE },
  { image: "bully", hash: run("bully-a-highest-crashed", "bully", 21), scheme: "light", size: WIDE },
  {
    image: "two-at-once",
    hash: "#/run?protocol=ricart-agrawala&nodes=3&request=0,2&at=11",
    scheme: "dark",
    size: WIDE,
  },
  { image: "raft", hash: run("raft-leader-crashes", "raft", 62), scheme: "light", size: WIDE },
  { image: "isis-phone", hash: run("isis-two-meet", "isis", 8), scheme: "light", size: PHONE },
  { image: "commit-phone", hash: run("two-phase-commit-blocked", "two-phase-commit", 12), scheme: "dark", size: PHONE },
  { image: "heartbeat", hash: "#/run?protocol=heartbeat&nodes=4&fork=20+crash+2&at=7", scheme: "dark", size: WIDE },
  { image: "check", hash: "#/check?protocol=bully", scheme: "light", size: WIDE },
];

function run(scenario: string, protocol: string, at: number): string {
  return `#/run?scenario=${scenario}&protocol=${protocol}&at=${at}`;
}

async function save(browser: Browser, image: string, png: Buffer): Promise<void> {
  const path = fileURLToPath(new URL(`../../docs/images/${image}.png`, import.meta.url));
  writeFileSync(path, await smallPng(browser, png));
}

async function ofLaboratory(browser: Browser, url: string, { image, hash, scheme, size }: Picture): Promise<void> {
  const page = await browser.newPage({ viewport: size, colorScheme: scheme });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${url}${hash}`);
  if (hash.startsWith("#/run")) {
    await ready(page);
    await settled(page);
    await page.waitForFunction(`document.querySelector(".view canvas")?.picture !== undefined`);
  } else await page.waitForSelector(hash.startsWith("#/check") ? '[data-testid="counterexample"] canvas' : "article");
  // A drawing that is scheduled for the next frame is complete in the second one.
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  await save(browser, `laboratory/${image}`, await page.screenshot());
  await page.close();
}

/** The margin below the legend. */
const MARGIN_PX = 24;
/** The time until the beginning has left the visible part of the diagram. */
const SETTLES_MS = 8_000;
/** The time until the zoomed events have arrived, and the log reports them. */
const ARRIVES_MS = 2_000;

async function opened(browser: Browser, cluster: ClusterUnderTest): Promise<Page> {
  const page = await browser.newPage({ viewport: { ...WIDE, height: 1_000 }, colorScheme: "light" });
  await page.goto(cluster.ready.studio as string);
  await page.waitForSelector('[data-testid="node-0"][data-process="running"]');
  await sleep(SETTLES_MS);
  return page;
}

async function ofLivePage(browser: Browser, page: Page, image: string): Promise<void> {
  await page.getByRole("button", { name: "Zoom to last" }).click();
  await page.mouse.move(0, 0);
  await sleep(ARRIVES_MS);
  const legend = await page.locator(".legend").boundingBox();
  if (legend === null) throw new Error("expected the page to have a legend");
  const height = Math.ceil(legend.y + legend.height + MARGIN_PX);
  await save(browser, image, await page.screenshot({ clip: { x: 0, y: 0, width: WIDE.width, height } }));
}

/** Shows five processes. The leader is killed, and the next one is elected. */
async function election(browser: Browser, image: string): Promise<void> {
  const cluster = await ClusterUnderTest.up("--nodes", "5", "--protocol", "bully");
  const page = await opened(browser, cluster);
  await page.waitForSelector('[data-testid="leader"][data-leader="4"]');
  await cluster.act({ type: "kill", node: 4 });
  await page.waitForSelector('[data-testid="leader"][data-leader="3"]');
  await sleep(ARRIVES_MS);
  await ofLivePage(browser, page, image);
}

/**
 * Shows two nodes that send at nearly the same time. Then one node is paused, a different one sends, and all others
 * hold that message back.
 */
async function multicast(browser: Browser, image: string): Promise<void> {
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
  await ofLivePage(browser, page, image);
}

const live = { studio: election, "studio-multicast": multicast };

const wanted = process.argv.slice(2);
const isWanted = (image: string): boolean => wanted.length === 0 || wanted.includes(image);
const { url, server } = await staticHost();
const browser = await launch();
try {
  for (const picture of pictures) if (isWanted(picture.image)) await ofLaboratory(browser, url, picture);
  for (const [image, take] of Object.entries(live)) {
    if (isWanted(image)) await take(browser, image);
    await endAll();
  }
} finally {
  await endAll();
  await browser.close();
  server.close();
}
