/**
 * Counts the work of the page in elements. It must be small when idle and in a burst, no matter how many messages
 * arrive. The simulator provides the input, and tests advance the page's clock, so the work is the same in every run
 * and independent of the speed of the machine.
 *
 * @module-tag long
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ClusterPicture, FeedEvent } from "../../src/cluster/feed.ts";
import { protocolNamed } from "../../src/protocols/index.ts";
import { type SimulationOptions, simulation } from "../../src/sim/index.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { PATIENCE_MS } from "../patience.ts";
import { launch, noBrowser } from "./chromium.ts";
import { drawn } from "./drawn.ts";

type Options = SimulationOptions<{ state: object; command: { type: string } }>;

const NODES = [0, 1, 2, 3, 4];
const BUILT = fileURLToPath(new URL("../../dist/studio", import.meta.url));
const CHUNK_MS = 50;
/** The time at which the page's clock is stopped. Until then, the clock runs while the page loads. */
const DAY_MS = 24 * 60 * 60 * 1_000;
/** The time on the cluster's clock at which virtual time begins. */
const BEGIN = Date.UTC(2026, 0, 1);

/** Returns the events in `forMs`, with `sends` commands to each node at `sendsAt`. */
function traceOf(protocol: string, forMs: number, sends: number, sendsAt: number): TraceEntry[] {
  const entries: TraceEntry[] = [];
  const { model, family } = protocolNamed(protocol);
  const sim = simulation({
    protocol: model() as Options["protocol"],
    nodes: NODES,
    seed: 1,
    delayMs: [1, 3],
    trace: (entry) => entries.push({ ...entry, at: BEGIN + entry.at }),
  });
  for (const node of NODES) sim.start(node);
  sim.run(sendsAt);
  for (const node of sends === 0 ? [] : NODES) {
    const command = family.ask(node, sends);
    if (command !== null) sim.command(node, command);
  }
  sim.run(forMs - sendsAt);
  return entries;
}

function pictureOf(protocol: string, atMs: number): ClusterPicture {
  const nodes = NODES.map((id) => ({
    id,
    pid: 100 + id,
    address: "",
    admin: "",
    process: "running" as const,
    exit: null,
    view: { role: "follower", leader: 4 },
    commands: [],
  }));
  const network = { cuts: [], dropRate: 0, delayMs: [0, 0] } as const;
  const now = BEGIN + atMs;
  const rest = {
    restarts: false,
    isAttached: false,
    takesFaults: true,
    inks: {},
    spans: { spans: "leadership", term: "term" } as const,
    network,
    networkSince: BEGIN,
  };
  return { name: "simulated", protocol, now, nodes, ...rest };
}

interface Counts {
  /** The number of elements that were added to the page while it was fed. */
  readonly added: number;
  readonly most: number;
  /** The maximum in one frame. */
  readonly mostLinesAdded: number;
  /**
   * The number of frames that changed the diagram, the log or the text of the page, and of frames that changed more
   * than one of them.
   */
  readonly frames: number;
  readonly crowdedFrames: number;
  /** The positions of the diagram, in pixels. */
  readonly shifts: readonly number[];
}

/** Runs in the page. It is a string because tests are compiled without the types of a browser. */
const FAKE_FEED = `
  window.EventSource = class { constructor() { window.feed = (event) => this.onmessage({ data: JSON.stringify(event) }); } close() {} };
`;
const COUNTING = `
  window.counts = { added: 0, most: 0, mostLinesAdded: 0, frames: 0, crowdedFrames: 0, shifts: [] };
  let frame = null;
  let changed = new Set();
  let linesAdded = 0;
  const endFrame = () => {
    if (changed.size > 0) window.counts.frames += 1;
    if (changed.size > 1) window.counts.crowdedFrames += 1;
    window.counts.mostLinesAdded = Math.max(window.counts.mostLinesAdded, linesAdded);
    changed = new Set();
    linesAdded = 0;
  };
  new MutationObserver((changes) => {
    if (frame !== performance.now()) endFrame(); // The clock does not advance within a frame.
    frame = performance.now();
    for (const { type, target, addedNodes } of changes) {
      const element = target instanceof Element ? target : target.parentElement;
      if (element.matches(".scroller")) window.counts.shifts.push(parseFloat(element.style.transform.split("(")[1]));
      else if (type === "childList" && element.closest(".scroller svg")) changed.add("diagram");
      else if (type === "childList" && element.matches('[data-testid="log"]')) changed.add("log");
      else if (element.closest(".overview")) changed.add("words");
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        window.counts.added += 1 + node.querySelectorAll("*").length;
        if (node.matches("li[data-topic]")) linesAdded += 1;
      }
    }
    window.counts.most = Math.max(window.counts.most, document.querySelectorAll("*").length);
  }).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["style", "d"] });
`;

describe.skipIf(noBrowser !== null)("the elements that the studio draws", () => {
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    if (!existsSync(BUILT)) throw new Error(`expected the built page at ${BUILT}: run npm run build`);
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(() => page?.close());

  const feed = (event: FeedEvent) => page.evaluate(`window.feed(${JSON.stringify(event)})`);

  /** Opens the page with all entries before `fromMs`, then feeds it the rest as a server would, and counts the work. */
  async function counted(
    protocol: string,
    entries: readonly TraceEntry[],
    fromMs: number,
    press?: string,
  ): Promise<Counts> {
    page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
    page.setDefaultTimeout(PATIENCE_MS);
    await page.clock.install({ time: BEGIN });
    await page.addInitScript(FAKE_FEED);
    await page.route("**/*", (route) => {
      const { pathname } = new URL(route.request().url());
      return route.fulfill({ path: `${BUILT}${pathname === "/" ? "/index.html" : pathname}` });
    });
    await page.goto("http://studio.test/");
    await page.waitForFunction("window.feed !== undefined");
    await page.clock.pauseAt(BEGIN + DAY_MS);
    const before = entries.filter(({ at }) => at < BEGIN + fromMs);
    await feed({ type: "snapshot", cluster: pictureOf(protocol, fromMs), networks: [], entries: before });
    await page.clock.runFor(500);
    await page.waitForSelector('[data-testid="leader"]');
    if (press !== undefined) await page.getByRole("button", { name: press }).click();
    await page.clock.runFor(500);
    await page.evaluate(COUNTING);
    const later = entries.filter(({ at }) => at >= BEGIN + fromMs);
    for (let at = BEGIN + fromMs; later.length > 0; at += CHUNK_MS) {
      const next = later.findIndex((entry) => entry.at >= at + CHUNK_MS);
      const chunk = later.splice(0, next === -1 ? later.length : next);
      if (chunk.length > 0) await feed({ type: "trace", entries: chunk });
      await page.clock.runFor(CHUNK_MS);
    }
    return page.evaluate<Counts>("window.counts");
  }

  test("epoch-bully when idle: renewals and confirmations are folded, and add no elements", async () => {
    const entries = traceOf("epoch-bully", 24_000, 0, 0);
    const renewals = entries.filter(({ at, kind }) => kind === "send" && at >= BEGIN + 20_000);
    expect(renewals.length).toBeGreaterThan(300);
    const { added } = await counted("epoch-bully", entries, 20_000);
    expect(await page.locator(".legend .chatter").innerText()).toMatch(/confirm, coordinator\s+folded/);
    expect(await page.evaluate<number>('document.querySelectorAll("*").length')).toBeLessThan(1_200);
    expect(added).toBeLessThan(renewals.length / 4);
  });

  test("the diagram moves by whole pixels, so it draws nothing between them", async () => {
    const { shifts } = await counted("epoch-bully", traceOf("epoch-bully", 4_000, 0, 0), 2_000, "True time");
    expect(new Set(shifts).size).toBeGreaterThan(3);
    expect(shifts.filter((px) => !Number.isInteger(px))).toEqual([]);
  });

  test("isis in a burst of 300: a bounded number of elements for any number of messages", async () => {
    const entries = traceOf("isis", 6_000, 60, 1_000);
    expect(entries.length).toBeGreaterThan(5_000);
    const { most, mostLinesAdded, frames, crowdedFrames } = await counted("isis", entries, 500);
    expect(most).toBeGreaterThan(200);
    expect(most).toBeLessThan(1_000);
    // Messages and marks are drawn on the canvas. Only the few selected ones are elements.
    expect(await page.locator(".message").count()).toBeLessThanOrEqual(3);
    const picture = await drawn(page);
    expect(picture?.messages.length).toBeGreaterThan(0);
    expect(picture?.messages.length).toBeLessThanOrEqual(700);
    expect(picture?.marks.length).toBeLessThanOrEqual(400);
    // Only visible lines of the log are drawn, and no frame does two large updates.
    expect(mostLinesAdded).toBeGreaterThan(0);
    expect(mostLinesAdded).toBeLessThanOrEqual(16);
    expect(frames).toBeGreaterThan(3);
    expect(crowdedFrames).toBe(0);
    // The omitted lines follow once the burst has ended.
    await page.clock.runFor(2_000);
    expect(await page.locator("li[data-topic]").count()).toBe(60);
  });
});
