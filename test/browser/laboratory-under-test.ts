/** Opens the laboratory in a browser, either as files below a path or as served by `coterie studio`. */
import { createReadStream, existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { launch, openPage } from "./chromium.ts";

const STUDIO = fileURLToPath(new URL("../../dist/studio", import.meta.url));

const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

/** Starts a simple host for files below a path. @returns the address of `first` */
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

/** Resolves when the run has been computed and its first state is shown. */
export const ready = (page: Page): Promise<unknown> =>
  page.waitForSelector('[data-testid="state-0"], [data-testid="state-1"]');

/** Resolves when no run, comparison or check is in progress. */
export const calm = (page: Page): Promise<unknown> =>
  page.waitForFunction(`document.querySelector('[aria-busy="true"]') === null`);

/**
 * Resolves when no run is being computed, and the worker's state for the current cursor is shown. Works on Run, Compare
 * and tours.
 */
export const settled = (page: Page): Promise<unknown> =>
  page.waitForFunction(`(() => {
    if (document.querySelector('[aria-busy="true"]') !== null) return false;
    const [cursor, shown] = ['[data-testid="cursor"]', '[data-testid="headline"], [data-testid="looks"]'].map((each) => document.querySelector(each));
    return cursor !== null && cursor.dataset.step === shown?.dataset.step;
  })()`);

/** Reads the address in the page, because the browser's own process may have an older one. */
export const hashOf = (page: Page): Promise<string> => page.evaluate<string>("location.hash");

export const headline = (page: Page): Promise<string> => page.getByTestId("headline").innerText();

export const stepOf = async (page: Page): Promise<number> =>
  Number(await page.getByTestId("cursor").getAttribute("data-step"));

export interface Laboratory {
  readonly browser: Browser;
  /** A new browser context for each test. */
  readonly context: BrowserContext;
  readonly url: string;
  /** Errors of pages during a test. The test fails if there are any at its end. */
  readonly complaints: string[];
  /** @param place the part after the address of the page, such as `#/run` */
  open(place?: string): Promise<Page>;
}

/** Call once per suite. Provides a host, a browser, and a profile for each test. */
export function laboratoryForTests(permissions: readonly string[] = []): Laboratory {
  const laboratory = {
    complaints: [] as string[],
    open: (place = "") => openPage(laboratory.context, `${laboratory.url}${place}`, laboratory.complaints),
  } as { -readonly [K in keyof Laboratory]: Laboratory[K] };
  let host: Server;
  beforeAll(async () => {
    laboratory.browser = await launch();
    ({ server: host, url: laboratory.url } = await staticHost());
  });
  afterAll(async () => {
    await laboratory.browser?.close();
    host?.close();
  });
  beforeEach(async () => {
    laboratory.complaints.length = 0;
    laboratory.context = await laboratory.browser.newContext({ viewport: { width: 1440, height: 1000 } });
    await laboratory.context.grantPermissions([...permissions]);
  });
  afterEach(async () => {
    await laboratory.context?.close();
    expect(laboratory.complaints).toEqual([]);
  });
  return laboratory;
}
