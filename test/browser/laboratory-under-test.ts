/** The laboratory in a browser, as files from a sub-path or as `coterie studio` serves it. */
import { createReadStream, existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import { PATIENCE_MS } from "../patience.ts";

const STUDIO = fileURLToPath(new URL("../../dist/studio", import.meta.url));

const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

/** A host of files that knows nothing of Coterie, which stand under a path of their own. @returns the address of `first` */
export async function staticHost(
  folder = STUDIO,
  first = "laboratory.html",
): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent((request.url ?? "").split("?")[0] ?? ""));
    const file = join(folder, path.replace(/^\/some\/where\//, ""));
    if (!path.startsWith("/some/where/") || !file.startsWith(folder) || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/some/where/${first}`, server };
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

/** The run is made and its first state is there. */
export const ready = (page: Page): Promise<unknown> =>
  page.waitForSelector('[data-testid="state-0"], [data-testid="state-1"]');

/** Nothing is being made: no run, no comparison, no check. */
export const calm = (page: Page): Promise<unknown> =>
  page.waitForFunction(`document.querySelector('[aria-busy="true"]') === null`);

/** No other run is being made, and the state at the cursor is shown, which a worker computes, and not that of where the cursor was before. On Run, Compare and tours. */
export const settled = (page: Page): Promise<unknown> =>
  page.waitForFunction(`(() => {
    if (document.querySelector('[aria-busy="true"]') !== null) return false;
    const [cursor, shown] = ['[data-testid="cursor"]', '[data-testid="headline"], [data-testid="looks"]'].map((each) => document.querySelector(each));
    return cursor !== null && cursor.dataset.step === shown?.dataset.step;
  })()`);

/** Read in the page: what the browser's own process knows of the address may be older. */
export const hashOf = (page: Page): Promise<string> => page.evaluate<string>("location.hash");

export const headline = (page: Page): Promise<string> => page.getByTestId("headline").innerText();

export const stepOf = async (page: Page): Promise<number> =>
  Number(await page.getByTestId("cursor").getAttribute("data-step"));
