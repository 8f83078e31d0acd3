/** Opens the live page of a real cluster in a browser, and reads its canvas. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { ClusterUnderTest, endAll } from "../e2e/cluster-under-test.ts";
import { launch, openPage } from "./chromium.ts";

const WIDE = { width: 1440, height: 1000 };

/** Provides a browser for a suite, and a cluster with its page for each test. */
export class StudioUnderTest {
  /** Errors of the page. None is expected at the end of a test. */
  readonly complaints: string[] = [];
  page!: Page;
  #browser!: Browser;

  constructor() {
    beforeAll(async () => {
      this.#browser = await launch();
    });
    afterAll(() => this.#browser?.close());
    afterEach(async () => {
      await this.page?.context().close();
      await endAll();
      expect(this.complaints.splice(0)).toEqual([]);
    });
  }

  /** @param words arguments of `coterie up` */
  async open(words: readonly string[], viewport = WIDE): Promise<ClusterUnderTest> {
    const cluster = await ClusterUnderTest.up(...words);
    const context = await this.#browser.newContext({ viewport });
    this.page = await openPage(context, cluster.ready.studio as string, this.complaints);
    await this.page.waitForSelector('[data-testid="node-1"][data-process="running"]');
    return cluster;
  }

  /** Sends the node's first command with that name, from its menu. */
  async command(node: number, name: string): Promise<void> {
    await this.page.getByRole("button", { name: `Send command to node ${node}` }).click();
    await this.page.getByRole("menuitem", { name, exact: true }).click();
  }

  log(): Promise<string> {
    return this.page.getByTestId("log").innerText();
  }

  headline(): Promise<string> {
    return this.page.getByTestId("leader").innerText();
  }
}
