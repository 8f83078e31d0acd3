/**
 * Starts the browser for the tests: the system's Chromium, headless. Opens pages and returns the findings of axe-core.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { PATIENCE_MS } from "../patience.ts";

const EXECUTABLE = process.env.COTERIE_CHROMIUM ?? "/usr/bin/chromium";

/** The reason why this machine cannot run browser tests, or null. CI requires a browser. */
export const noBrowser =
  existsSync(EXECUTABLE) || process.env.CI !== undefined
    ? null
    : `expected Chromium at ${EXECUTABLE} (set COTERIE_CHROMIUM to another path)`;

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    timeout: PATIENCE_MS,
    // The sandbox needs privileges that a container lacks. The other options prevent the browser's own requests to the
    // network.
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Opens a page and collects all its errors and warnings. */
export async function openPage(context: BrowserContext, url: string, complaints: string[]): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(url);
  return page;
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Returns the findings of axe-core as text. Tests expect none. */
export async function complaintsOfAxe(page: Page, options = {}): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate<Violation[]>(
    `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`,
  );
  return found.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}
