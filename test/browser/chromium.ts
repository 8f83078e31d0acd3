/** The browser of the tests: Chromium as the system has it, headless; its pages, and what axe-core complains of on them. */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { PATIENCE_MS } from "../patience.ts";

const EXECUTABLE = process.env.COTERIE_CHROMIUM ?? "/usr/bin/chromium";

/** Why there is no browser test on this machine, or null. In CI a browser is required. */
export const noBrowser =
  existsSync(EXECUTABLE) || process.env.CI !== undefined
    ? null
    : `there is no Chromium at ${EXECUTABLE} (set COTERIE_CHROMIUM to another)`;

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    timeout: PATIENCE_MS,
    // The sandbox needs privileges that a container lacks; the rest keeps the browser from calling home.
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

/** A page that notes everything it complains of. */
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

/** Each in words; none is how it should be. */
export async function complaintsOfAxe(page: Page, options = {}): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate<Violation[]>(
    `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`,
  );
  return found.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}
