/**
 * Measures how smoothly the live page and the laboratory draw: the time between frames in Chromium for each protocol in
 * the registry, both when idle and during a burst. The data comes from the simulator, so that all runs are equal and no
 * cluster uses the CPU.
 *
 *     npx coterie bench studio [--protocol raft,isis --commands 300 --json]
 *
 * Chromium renders in software, without a GPU. The benchmark prints figures and does not assert anything.
 */
import { existsSync } from "node:fs";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { protocolNamed, protocolNames } from "../src/protocols/index.ts";
import { commandLine, progress } from "./command-line.ts";
import { printTable } from "./results.ts";
import { type Frames, firstPaint, framesWhile, openPage } from "./studio/pages.ts";
import { BEFORE_MS, BURST_MS, REST_MS, recorded } from "./studio/recorded.ts";

const { values, refuse, someOf, whole } = commandLine(
  "studio",
  {
    protocol: { such: "<a,b>", default: protocolNames.join(), help: "which protocols (default: all)" },
    nodes: { such: "<n>", default: "5", help: "how many nodes (default: 5)" },
    commands: { such: "<n>", default: "300", help: "how many commands make the burst (default: 300)" },
    long: { help: "also a run of 100,000 events in the laboratory" },
    json: { help: "one object for each page, as a list" },
  },
  {
    note: "It needs Chromium at /usr/bin/chromium, or where COTERIE_CHROMIUM says. All protocols take about ten minutes.",
  },
);

const executablePath = process.env.COTERIE_CHROMIUM ?? "/usr/bin/chromium";
const protocols = someOf("protocol", values.protocol, protocolNames);
const nodes = whole("nodes", values.nodes, 1, 32);
const commands = whole("commands", values.commands, 1, 100_000);
if (!existsSync(executablePath)) refuse(`expected Chromium at ${executablePath}: set COTERIE_CHROMIUM to where it is`);

const CHUNK_MS = 50;
/** How long a newly opened page needs to settle. */
const SETTLES_MS = 1_000;

async function live(browser: Browser, protocol: string) {
  const page = await openPage(browser, "/");
  try {
    const begin = Date.now() - BEFORE_MS;
    const { snapshot, later, hasBurst } = recorded(protocol, nodes, commands, begin);
    const feed = (event: unknown) => page.evaluate(`window.feed(${JSON.stringify(event)})`);
    await feed(snapshot);
    await page.waitForSelector('[data-testid="leader"]');
    const paintMs = await firstPaint(page);
    await sleep(SETTLES_MS);
    let next = 0;
    const pour = async (fromMs: number, forMs: number): Promise<void> => {
      const started = Date.now();
      for (let toMs = fromMs; toMs < fromMs + forMs; ) {
        toMs += CHUNK_MS;
        const first = next;
        while (next < later.length && (later[next]?.at ?? 0) < begin + toMs) next += 1;
        if (next > first) await feed({ type: "trace", entries: later.slice(first, next) });
        await sleep(Math.max(0, started + toMs - fromMs - Date.now()));
      }
    };
    const rest = await framesWhile(page, () => pour(BEFORE_MS, REST_MS));
    const burst = hasBurst ? await framesWhile(page, () => pour(BEFORE_MS + REST_MS, BURST_MS)) : null;
    return { paintMs, frames: { "at rest": rest, ...(burst === null ? {} : { burst }) } };
  } finally {
    await page.close();
  }
}

async function laboratory(browser: Browser, protocol: string, often: string) {
  const page = await openPage(browser, `/laboratory.html#/run?protocol=${protocol}&nodes=${nodes}${often}`);
  try {
    const paintMs = await firstPaint(page);
    await page.waitForSelector('[data-testid^="state-"], [role="alert"]');
    await sleep(SETTLES_MS);
    const rest = await framesWhile(page, () => sleep(1_000));
    const moved = await framesWhile(page, () => handled(page));
    return { paintMs, frames: { "at rest": rest, moved } };
  } finally {
    await page.close();
  }
}

/** Moves around like a user who is searching: to the end, back, step by step, sideways, zooming in and out. */
async function handled(page: Page): Promise<void> {
  const diagram = await page.getByRole("figure").first().boundingBox();
  if (diagram === null) throw new Error("expected a diagram, got none");
  await page.mouse.move(diagram.x + diagram.width / 2, diagram.y + 100);
  await page.keyboard.press("End");
  await sleep(200);
  await page.keyboard.press("Home");
  for (let turn = 0; turn < 10; turn++) await page.keyboard.press("ArrowRight");
  for (let turn = 0; turn < 20; turn++) await page.mouse.wheel(160, 0);
  await page.keyboard.down("Control");
  for (let turn = 0; turn < 30; turn++) await page.mouse.wheel(0, turn < 20 ? 120 : -120);
  await page.keyboard.up("Control");
  await sleep(300);
}

/** Messages per node with isis, which lead to 100,000 events with five nodes. */
const LONG = "&messages=555";

/** Returns a protocol's burst as URL parameters. */
function burst(protocol: string): string {
  const { count } = protocolNamed(protocol).family;
  return count === null ? "" : `&${count}=${Math.ceil(commands / nodes)}`;
}

const browser = await chromium.launch({
  executablePath,
  // The sandbox needs privileges that a container does not have.
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const pages: { readonly name: string; readonly paintMs: number; readonly frames: Readonly<Record<string, Frames>> }[] =
  [];
try {
  for (const protocol of protocols) {
    progress(protocol);
    pages.push({ name: `${protocol}, live`, ...(await live(browser, protocol)) });
    pages.push({ name: `${protocol}, laboratory`, ...(await laboratory(browser, protocol, burst(protocol))) });
  }
  if (values.long) pages.push({ name: "isis, 100,000 events", ...(await laboratory(browser, "isis", LONG)) });
} finally {
  progress("");
  await browser.close();
}

if (values.json) console.log(JSON.stringify(pages));
else {
  console.log(`The live page and the laboratory of ${nodes} nodes in Chromium; the burst is ${commands} commands. The load of the machine: ${loadavg()[0]?.toFixed(1)}.
Milliseconds between frames, then the most that the main thread worked for a frame, on its own clock, and the first contentful paint.`);
  const rows = pages.flatMap(({ name, paintMs, frames }) =>
    Object.entries(frames).map(([state, { median, p95, worst, workWorst }]) => [
      `${name}, ${state}`,
      ...[median, p95, worst, workWorst, paintMs].map((ms) => ms.toFixed(1)),
    ]),
  );
  const highest = [1, 2, 3, 4, 5].map((at) => Math.max(...rows.map((row) => Number(row[at]))).toFixed(1));
  printTable([["", "median", "95 %", "longest", "work", "paint"], ...rows, ["the highest", ...highest]]);
}
