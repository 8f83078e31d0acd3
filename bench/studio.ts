/**
 * How smoothly the live page and the laboratory draw: for each protocol of the registry the time between frames in Chromium, at
 * rest and in a burst. What is drawn comes from the simulator, so it is the same in every run and no cluster takes the processors.
 *
 *     npx coterie bench studio [--protocol raft,isis --commands 300 --json]
 *
 * It draws in software: figures are those of a machine without a graphics card. It prints, and asserts nothing.
 */
import { existsSync } from "node:fs";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { protocolNamed, protocolNames } from "../src/protocols/index.ts";
import { commandLine } from "./command-line.ts";
import { quantile } from "./results.ts";
import { type Frames, firstPaint, framesWhile, MEASURES_MEMORY, memoryOf, openPage, sizes } from "./studio/pages.ts";
import { BEFORE_MS, BURST_MS, REST_MS, recorded } from "./studio/recorded.ts";

const { values, refuse, someOf, whole } = commandLine(
  "studio",
  {
    protocol: { such: "<a,b>", default: protocolNames.join(), help: "which protocols (default: all)" },
    nodes: { such: "<n>", default: "5", help: "how many nodes (default: 5)" },
    commands: { such: "<n>", default: "300", help: "how many commands make the burst (default: 300)" },
    long: { help: "also a run of 100,000 events in the laboratory" },
    json: { help: "one object for each protocol, a line each" },
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

interface Measured {
  readonly protocol: string;
  readonly livePaintMs: number;
  readonly liveRest: Frames;
  readonly liveBurst: Frames | null;
  readonly laboratoryPaintMs: number;
  readonly laboratoryRest: Frames;
  /** While a run with the burst is played, moved and zoomed. */
  readonly laboratoryMoved: Frames;
}

const CHUNK_MS = 50;
/** A page that was just opened has much to do at once. */
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
    return { paintMs, rest, burst };
  } finally {
    await page.close();
  }
}

async function laboratory(browser: Browser, protocol: string, often: string) {
  const page = await openPage(browser, `/laboratory.html#/run?protocol=${protocol}&nodes=${nodes}${often}`);
  try {
    const paintMs = await firstPaint(page);
    const asked = Date.now();
    await page.waitForSelector('[data-testid^="state-"], [role="alert"]');
    const openedS = (Date.now() - asked) / 1_000;
    await sleep(SETTLES_MS);
    const rest = await framesWhile(page, () => sleep(1_000));
    const moved = await framesWhile(page, () => handled(page));
    const stepMs = await stepped(page);
    return { paintMs, openedS, rest, moved, stepMs, bytes: await memoryOf(page) };
  } finally {
    await page.close();
  }
}

/** From a key to the state at the next step of a long run: the median of some, forwards and back. */
async function stepped(page: Page): Promise<number> {
  await page.keyboard.press("End");
  const times: number[] = [];
  for (let turn = 0; turn < 20; turn++) {
    const asked = Date.now();
    await page.keyboard.press(turn % 3 === 0 ? "ArrowRight" : "ArrowLeft");
    const arrived = `document.querySelector('[data-testid="headline"]').dataset.step + "" ===
      document.querySelector('[data-testid="cursor"]').dataset.step + ""`;
    await page.waitForFunction(arrived);
    times.push(Date.now() - asked);
  }
  return quantile(times, 0.5);
}

/** What a person does who looks for something: to the end, back, step by step, to the side, closer and further. */
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

const four = (frames: Frames | null): string => {
  const cells =
    frames === null
      ? ["–", "", "", ""]
      : [frames.median.toFixed(1), frames.p95.toFixed(1), frames.worst.toFixed(0), frames.workWorst.toFixed(0)];
  return cells.map((cell) => cell.padStart(6)).join("");
};

/** As words of a link. */
function burst(protocol: string): string {
  const { count } = protocolNamed(protocol).family;
  return count === null ? "" : `&${count}=${Math.ceil(commands / nodes)}`;
}

/** So often each of five members of isis sends for 100,000 events. */
const LONG = "&messages=555";

const browser = await chromium.launch({
  executablePath,
  // The sandbox needs privileges that a container lacks.
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", MEASURES_MEMORY],
});
if (!values.json) {
  console.log(`The live page and the laboratory of ${nodes} nodes in Chromium; the burst is ${commands} commands. The load of the machine before it: ${loadavg()[0]?.toFixed(1)}.
Milliseconds between frames: the median, what 95 of 100 keep within, and the longest; then what the main thread worked
for a frame at most, on its own clock, which stands still while other programs have the processor. paint: the first contentful paint.
`);
  const heads = ["live at rest", "live, burst", "lab at rest", "lab, moved"].map((head) => head.padStart(24)).join("");
  console.log(`${"".padEnd(20)}${heads}  paint: live, lab`);
}
const all: Measured[] = [];
try {
  for (const protocol of protocols) {
    const [feed, run] = [await live(browser, protocol), await laboratory(browser, protocol, burst(protocol))];
    const measured = {
      protocol,
      livePaintMs: feed.paintMs,
      liveRest: feed.rest,
      liveBurst: feed.burst,
      laboratoryPaintMs: run.paintMs,
      laboratoryRest: run.rest,
      laboratoryMoved: run.moved,
    };
    all.push(measured);
    const figures = [feed.rest, feed.burst, run.rest, run.moved].map(four).join("");
    const paints = `${feed.paintMs.toFixed(0).padStart(11)}${run.paintMs.toFixed(0).padStart(6)}`;
    console.log(values.json ? JSON.stringify(measured) : `${protocol.padEnd(20)}${figures}${paints}`);
  }
  if (values.long) {
    const { openedS, rest, moved, stepMs, bytes } = await laboratory(browser, "isis", LONG);
    const megabytes = Math.round(bytes / 1_000_000);
    console.log(
      values.json
        ? JSON.stringify({ long: { openedS, stepMs, megabytes, rest, moved } })
        : `isis, 100,000 events, in the laboratory: opened in ${openedS.toFixed(1)} s, a step of the cursor in ${stepMs} ms, ${megabytes} MB with its worker; at rest and moved${[rest, moved].map(four).join("")}`,
    );
  }
} finally {
  await browser.close();
}
if (!values.json) {
  const frames = all.flatMap((each) =>
    [each.liveRest, each.liveBurst ?? [], each.laboratoryRest, each.laboratoryMoved].flat(),
  );
  const paints = all.flatMap(({ livePaintMs, laboratoryPaintMs }) => [livePaintMs, laboratoryPaintMs]);
  const worst = (of: (each: Frames) => number): string => Math.max(...frames.map(of)).toFixed(1);
  console.log(`
The highest median ${worst(({ median }) => median)} ms, p95 ${worst(({ p95 }) => p95)} ms, interval ${worst((each) => each.worst)} ms; the latest first paint ${Math.max(...paints).toFixed(0)} ms.`);
  for (const name of ["index.html", "laboratory.html"]) {
    const { first, later } = sizes(name);
    const rest = later.map(([file, bytes]) => `${file} ${(bytes / 1_000).toFixed(1)}`).join(", ");
    console.log(`${name} loads ${(first / 1_000).toFixed(1)} KB (gzip) first; by itself later, if at all: ${rest}.`);
  }
}
