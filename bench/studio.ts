/**
 * How smoothly the studio draws: for each protocol in turn a real cluster is started and its page opened in Chromium, and
 * the time between frames is measured while nobody does anything and while commands come in a burst.
 *
 *     npm run bench:studio [-- --protocol epoch-bully,isis --seconds 5 --commands 300]
 *
 * It draws in software and shares the processors with the cluster: figures are those of a small machine without a graphics
 * card. Run it while nothing else runs.
 */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { protocolNames } from "../src/protocols/index.ts";
import { commandLine } from "./command-line.ts";
import { Cluster } from "./studio/cluster.ts";
import { FrameCounter, type Frames } from "./studio/frames.ts";

const { values, refuse, amount, someOf } = commandLine(
  "studio",
  {
    protocol: { such: "<a,b>", default: protocolNames.join(), help: "which protocols (default: all)" },
    nodes: { such: "<n>", default: "5", help: "how many members (default: 5)" },
    seconds: { such: "<s>", default: "5", help: "how long each measurement takes (default: 5)" },
    commands: { such: "<n>", default: "300", help: "how many commands make the burst (default: 300)" },
    json: { help: "one object for each protocol, a line each" },
  },
  {
    note: "It needs Chromium at /usr/bin/chromium, or where COTERIE_CHROMIUM says. All protocols take about eight minutes.",
  },
);

const executablePath = process.env.COTERIE_CHROMIUM ?? "/usr/bin/chromium";

const protocols = someOf("protocol", values.protocol, protocolNames);
const nodes = amount("nodes", values.nodes, 32);
const seconds = amount("seconds", values.seconds, 600);
const commands = amount("commands", values.commands, 100_000);
if (!existsSync(executablePath)) refuse(`expected Chromium at ${executablePath}: set COTERIE_CHROMIUM to where it is`);

/** In the source tree as in `build/`, where this is compiled to. */
const root = import.meta.url.endsWith(".ts") ? "../" : "../../";
const cli = fileURLToPath(new URL(`${root}dist/cli/coterie.js`, import.meta.url));
/** A page that was just opened has much to draw at once; and a minute's history is more to draw than none. */
const SETTLES_MS = 8_000;
/** What of a burst is asked for at the same time. */
const AT_ONCE = 8;
/** What makes a node do its work, by the last word of the command. */
const WORK = ["send", "use", "enter", "propose", "call"];

interface Measured {
  readonly protocol: string;
  /** The command of the burst; null where there is none. */
  readonly command: string | null;
  readonly rest: Frames;
  readonly burst: Frames | null;
}

async function measure(browser: Browser, protocol: string): Promise<Measured> {
  const cluster = await Cluster.up(cli, protocol, nodes, (stop) => {
    stopCluster = stop;
  });
  const page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
  try {
    await page.goto(cluster.url);
    await page.waitForSelector('[data-testid="leader"]');
    await sleep(SETTLES_MS);
    const counter = await FrameCounter.of(browser, page);
    const rest = await counter.while(() => sleep(seconds * 1_000));
    const offered = [...(await cluster.commands())];
    const command = WORK.flatMap((word) => offered[0]?.[1].filter((each) => each.split(".").at(-1) === word) ?? [])[0];
    if (command === undefined) return { protocol, command: null, rest, burst: null };
    const burst = await counter.while(() =>
      Promise.all([
        sleep(seconds * 1_000),
        inBurst((index) => cluster.tell(offered[index % offered.length]?.[0] ?? 0, command)),
      ]),
    );
    return { protocol, command, rest, burst };
  } finally {
    await page.close();
    await cluster.stop();
  }
}

async function inBurst(act: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < commands) await act(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

function row({ protocol, command, rest, burst }: Measured): string {
  const cells = [rest, burst].flatMap((frames) =>
    frames === null
      ? ["–", "", "", "", "", ""]
      : [
          frames.perSecond.toFixed(1),
          frames.worstMs.toFixed(0),
          String(frames.late),
          frames.workMs.toFixed(1),
          frames.p95WorkMs.toFixed(1),
          String(frames.elements),
        ],
  );
  return `${protocol.padEnd(20)}${cells.map((cell) => cell.padStart(8)).join("")}  ${command ?? "no command"}`;
}

let stopCluster = async (): Promise<void> => {};
// The sandbox needs privileges that a container lacks.
const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath, args });
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    void Promise.allSettled([stopCluster(), browser.close()]).then(() => process.exit(130));
  });

if (!values.json) {
  console.log(`The studio of ${nodes} members in Chromium, ${seconds} s at rest, then a burst of ${commands} commands.
fps: median frames a second. worst: the longest interval between frames, ms. late: intervals above 50 ms.
work, p95: the main thread's work per frame, the median and what 95 of 100 frames keep within: ms of the processor.
nodes: elements of the page.\n`);
  const heads = ["fps", "worst", "late", "work", "p95", "nodes"].map((head) => head.padStart(8)).join("");
  console.log(`${"".padEnd(20)}${"at rest".padStart(48)}${"in a burst".padStart(48)}`);
  console.log(`${"".padEnd(20)}${heads}${heads}  command`);
}
const all: Measured[] = [];
for (const protocol of protocols) {
  const measured = await measure(browser, protocol);
  all.push(measured);
  console.log(values.json ? JSON.stringify(measured) : row(measured));
}
await browser.close();
if (!values.json) {
  const frames = all.flatMap(({ rest, burst }) => (burst === null ? [rest] : [rest, burst]));
  const slowest = Math.min(...frames.map((each) => each.perSecond));
  const longest = Math.max(...frames.map((each) => each.worstMs));
  const hardest = Math.max(...frames.map((each) => each.p95WorkMs));
  console.log(`
The lowest median: ${slowest.toFixed(1)} frames a second. The longest interval: ${longest.toFixed(0)} ms.
The most work: 95 of 100 frames keep within ${hardest.toFixed(1)} ms of the processor.`);
}
