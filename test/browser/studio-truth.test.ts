/**
 * What the page says of what was done: in the order in which it happened, and with what can be commanded.
 *
 * @module-tag long
 */

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ClusterUnderTest, endAll } from "../e2e/cluster-under-test.ts";
import { PATIENCE_MS } from "../patience.ts";
import { launch, noBrowser } from "./chromium.ts";
import { drawn } from "./drawn.ts";

describe.skipIf(noBrowser !== null)("the studio tells what was done", () => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    await page?.close();
    await endAll();
  });

  async function opened(...words: string[]): Promise<ClusterUnderTest> {
    const cluster = await ClusterUnderTest.up(...words);
    page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(cluster.ready.studio as string);
    await page.waitForSelector('[data-testid="node-1"][data-process="running"]');
    return cluster;
  }
  const log = () => page.getByTestId("log").innerText();
  /** The nodes of which lines of the log say that: on a busy machine not all at once, and so not in one line. */
  const whoIn = (lines: string, words: string): string[] => {
    const found = [...lines.matchAll(new RegExp(`nodes? ([\\d, and]+) ${words}`, "g"))];
    return [...new Set(found.flatMap(([, nodes = ""]) => nodes.match(/\d/g) ?? []))].sort();
  };

  test("paxos takes proposals; a split leaves its span, also for a page that is opened later", async () => {
    const cluster = await opened("--nodes", "3", "--protocol", "paxos");
    await page.getByRole("button", { name: "Send command to node 0" }).click();
    await page.getByRole("menuitem", { name: "propose" }).click();
    await expect.poll(async () => whoIn(await log(), "decides? greeting 1")).toEqual(["0", "1", "2"]);

    await cluster.act({ type: "split", groups: [[0, 1], [2]] });
    const network = async () => (await drawn(page))?.network;
    await expect.poll(network).toContain("split: 0 and 1 | 2");
    await cluster.act({ type: "heal" });
    await page.reload();
    await expect.poll(network).toContain("split: 0 and 1 | 2");
    await expect.poll(log).toMatch(/all links mended[\s\S]*the network is split: 0 and 1 \| 2/);
  });

  test("chang-roberts says that nobody has called an election, until somebody does", async () => {
    await opened("--nodes", "3", "--protocol", "chang-roberts");
    const headline = () => page.getByTestId("leader").innerText();
    await expect.poll(headline).toMatch(/^Nobody has called an election yet\./);
    await page.getByRole("button", { name: "Send command to node 0" }).click();
    await page.getByRole("menuitem", { name: "call" }).click();
    await expect.poll(headline).toMatch(/^Node 2 leads\./);
  });

  test.each([
    ["pbft", /\bview \d/],
    ["epoch-bully", /\bepoch \d/],
  ])("a node of %s names its term as the protocol does", async (protocol, words) => {
    await opened("--nodes", "4", "--protocol", protocol);
    const card = () => page.getByTestId("node-1").innerText();
    await expect.poll(card).toMatch(words);
    expect(await card()).not.toMatch(/\bterm\b/);
  });

  test("maekawa draws its voting sets, and which node waits for which; an entry has its messages counted", async () => {
    const cluster = await opened("--nodes", "3", "--protocol", "maekawa");
    await page.waitForSelector('[data-topology="quorums"] .hull');
    await page.getByRole("button", { name: "Send command to node 0" }).click();
    await page.getByRole("menuitem", { name: "Request", exact: true }).click();
    // Its own vote, and that of the other of its set: a request, a vote.
    await expect.poll(() => page.getByTestId("work").innerText()).toBe("2 for the last entry, so far");
    await cluster.command(1, "mutex.enter");
    const topology = () => page.locator(".topology[data-topology] svg").getAttribute("aria-label");
    await expect.poll(topology).toMatch(/1 waits for 0/);
    await page.getByRole("button", { name: "node 0: inside" }).click();
    await page.waitForSelector('[data-node="0"][aria-pressed="true"]');
  });

  test("token-ring draws its ring, with one token", async () => {
    await opened("--nodes", "3", "--protocol", "token-ring");
    const token = () => page.locator('[data-topology="ring"] .token').count();
    await expect.poll(token).toBe(1);
  });

  test("fifo counts what is delivered", async () => {
    await opened("--nodes", "3", "--protocol", "fifo");
    const headline = () => page.getByTestId("leader").innerText();
    await expect.poll(headline).toMatch(/^Nothing is delivered yet\./);
    await page.getByRole("button", { name: "Send command to node 0" }).click();
    await page.getByRole("menuitem").first().click();
    await expect.poll(headline).toMatch(/^Each node has delivered 1 message\./);
  });

  test("a node resumes before others hear from it again", async () => {
    const cluster = await opened("--nodes", "3", "--protocol", "heartbeat");
    await cluster.act({ type: "pause", node: 2 });
    // Newest first. What was suspected before the pause was a mistake, which what is read late may yet take back.
    const sinceThePause = async () => /[\s\S]*(?=node 2 was paused)/.exec(await log())?.[0] ?? "";
    await expect.poll(async () => whoIn(await sinceThePause(), "suspects? node 2")).toEqual(["0", "1"]);
    await cluster.act({ type: "resume", node: 2 });
    await expect.poll(log).toMatch(/hears? from node 2 again[\s\S]*node 2 resumed/);
    const [after = "", before = ""] = (await log()).split("node 2 resumed");
    expect(after).toMatch(/hears? from node 2 again/);
    // What it had sent before it was paused may be read late, so that it is heard of and suspected again.
    expect(/(suspects?|hears? from) node 2/.exec(before)?.[1]).toMatch(/suspect/);
    expect(before).toMatch(/suspects? node 2[\s\S]*node 2 was paused/);
  });
});
