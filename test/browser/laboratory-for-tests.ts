/** What tests of the laboratory in a browser begin and end with. */
import type { Server } from "node:http";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { launch } from "./chromium.ts";
import { openPage, staticHost } from "./laboratory-under-test.ts";

export interface Laboratory {
  readonly browser: Browser;
  /** Anew for each test. */
  readonly context: BrowserContext;
  readonly url: string;
  /** Of pages, while a test runs; there may be none at its end. */
  readonly complaints: string[];
  /** @param place such as `#/run`, after the address of the page. */
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
