/** The pictures of docs/laboratory.md: photographs of the page. `npm run pictures:laboratory` takes them anew. */
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { launch } from "../browser/chromium.ts";
import { PATIENCE_MS, ready, staticHost } from "../browser/laboratory-under-test.ts";

interface Picture {
  readonly image: string;
  readonly hash: string;
  readonly scheme: "light" | "dark";
  readonly width: number;
  readonly height: number;
  /** How often the cursor moves on. */
  readonly steps?: number;
}

const WIDE = { width: 1_440, height: 900 };
const PHONE = { width: 390, height: 844 };
const bully = "#/run?scenario=bully-a-highest-crashed&protocol=bully";

const pictures: readonly Picture[] = [
  { image: "gallery", hash: "#/gallery", scheme: "light", ...WIDE },
  { image: "gallery-phone", hash: "#/gallery", scheme: "dark", ...PHONE },
  { image: "bully", hash: bully, scheme: "light", steps: 22, ...WIDE },
  { image: "bully-phone", hash: bully, scheme: "light", steps: 22, ...PHONE },
  {
    image: "two-at-once",
    hash: "#/run?protocol=ricart-agrawala&nodes=3&request=0,2",
    scheme: "dark",
    steps: 12,
    ...WIDE,
  },
  { image: "raft", hash: "#/run?scenario=raft-leader-crashes&protocol=raft", scheme: "light", steps: 44, ...WIDE },
  { image: "check", hash: "#/check?protocol=bully", scheme: "light", ...WIDE },
  { image: "counterexample", hash: "#/run?protocol=bully&counterexample=1", scheme: "dark", ...WIDE },
];

async function photographed(browser: Browser, url: string, picture: Picture): Promise<void> {
  const { image, hash, scheme, width, height, steps = 0 } = picture;
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${url}${hash}`);
  if (hash.startsWith("#/run")) await ready(page);
  else await page.waitForSelector(hash.startsWith("#/check") ? '[data-testid="verdict"]' : "article");
  if (steps > 0) await page.keyboard.press("Home");
  for (let step = 0; step < steps; step++) await page.keyboard.press("ArrowRight");
  if (steps > 0) await page.waitForSelector(`[data-testid="headline"][data-step="${steps - 1}"]`);
  await page.screenshot({ path: fileURLToPath(new URL(`../../docs/images/laboratory/${image}.png`, import.meta.url)) });
  await page.close();
}

const { url, server } = await staticHost();
const browser = await launch();
try {
  for (const picture of pictures) await photographed(browser, url, picture);
} finally {
  await browser.close();
  server.close();
}
