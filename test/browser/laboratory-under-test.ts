/** The laboratory in a browser, as files from a sub-path or as `coterie studio` serves it. */
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

/** A plain host for files under a path of their own. @returns the address of `first` */
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

/** The run is computed and its first state is there. */
export const ready = (page: Page): Promise<unknown> =>
  page.waitForSelector('[data-testid="state-0"], [data-testid="state-1"]');

/** No run, comparison or check is in progress. */
export const calm = (page: Page): Promise<unknown> =>
  page.waitForFunction(`document.querySelector('[aria-busy="true"]') === null`);

/** No run is being computed, and the worker's state for the current cursor is shown. On Run, Compare and tours. */
export const settled = (page: Page): Promise<unknown> =>
  page.waitForFunction(`(() => {
    if (document.querySelector('[aria-busy="true"]') !== null) return false;
    const [cursor, shown] = ['[data-testid="cursor"]', '[data-testid="headline"], [data-testid="looks"]'].map((each) => document.querySelector(each));
    return cursor !== null && cursor.dataset.step === shown?.dataset.step;
  })()`);

/** Read in the page, because the browser's own process may have an older address. */
export const hashOf = (page: Page): Promise<string> => page.evaluate<string>("location.hash");

export const headline = (page: Page): Promise<string> => page.getByTestId("headline").innerText();

export const stepOf = async (page: Page): Promise<number> =>
  Number(await page.getByTestId("cursor").getAttribute("data-step"));

export interface Laboratory {
  readonly browser: Browser;
  /** New for each test. */
  readonly context: BrowserContext;
  readonly url: string;
  /** Errors of pages while a test runs. The test fails if there are any at its end. */
  readonly complaints: string[];
  /** @param place such as `#/run`, after the address of the page */
  open(place?: string): Promise<Page>;
}

/** For the tests of a suite: a host, a browser, and a profile for each test. */
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
