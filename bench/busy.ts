/**
 * Members beside loops that keep all processors busy: how many sessions each timing loses. A session lost is a lock or a leadership
 * lost, so this is what a timing has to stand on a machine that others use, too. Each member holds a lock and writes once a second.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join as path } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "../src/cluster/join.ts";
import { type Timing, timings } from "../src/cluster/services/timing.ts";
import { commandLine } from "./command-line.ts";
import { freePorts } from "./multicast/group.ts";

const SIZE = 3;
const WRITE_EVERY_MS = 1_000;
const WRITE_MS = 60_000;

interface Being {
  readonly id: number;
  readonly members: Readonly<Record<number, string>>;
  readonly dataDir: string;
  readonly timing: Timing;
}

/** What a member tells of itself, each as it happens. */
type Note =
  | { note: "holds" }
  | { note: "session-lost" }
  | { note: "leader-changed" }
  | { note: "wrote"; tookMs: number };

/** Of all members under one timing. */
interface Sum {
  holders: number;
  lost: number;
  leaders: number;
  readonly wrote: number[];
}

const [mode = "", being = ""] = process.argv.slice(2);
if (mode === "--member") await live(JSON.parse(being) as Being);
else await measure();

async function live({ id, members, dataDir, timing }: Being): Promise<void> {
  const member = await join({ id, members, dataDir, timing, cluster: "bench", tls: "off" });
  const tell = (note: Note): void => void process.send?.(note);
  process.on("disconnect", () => process.exit());
  void (async () => {
    for await (const { type } of member.events()) {
      if (type === "session-lost") tell({ note: "session-lost" });
      if (type === "log-leader-changed") tell({ note: "leader-changed" });
    }
  })();
  void (async () => {
    for (;;) {
      const grant = await member.mutex(`of ${id}`).acquire({ timeoutMs: WRITE_MS });
      tell({ note: "holds" });
      await new Promise<void>((resolve) => grant.signal.addEventListener("abort", () => resolve()));
    }
  })();
  for (let n = 0; ; n++) {
    const began = performance.now();
    await member.map<number>("numbers").put(`of ${id}`, n, { timeoutMs: WRITE_MS });
    tell({ note: "wrote", tookMs: performance.now() - began });
    await sleep(WRITE_EVERY_MS);
  }
}

async function measure(): Promise<void> {
  const { values, whole, amount, someOf } = commandLine("busy", {
    loops: { such: "N", default: "8", help: "how many busy loops run beside the members (8)" },
    minutes: { such: "N", default: "10", help: "how long, for each timing (10)" },
    timings: { such: "LIST", default: "default", help: `of ${timings.join(",")} (default)` },
  });
  const loops = whole("loops", values.loops, 0, 1_000);
  const minutes = amount("minutes", values.minutes, 10_000);
  console.log(
    `${SIZE} members beside ${loops} busy loops on ${availableParallelism()} processors, ${minutes} min each`,
  );
  for (const timing of someOf("timings", values.timings, timings)) console.log(await under(timing, loops, minutes));
}

async function under(timing: Timing, loops: number, minutes: number): Promise<string> {
  const folder = mkdtempSync(path(tmpdir(), "coterie-busy-"));
  const children: ChildProcess[] = [];
  const sum: Sum = { holders: 0, lost: 0, leaders: 0, wrote: [] };
  const end = (): void => {
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  const interrupted = (): void => {
    end();
    process.exit(130);
  };
  process.once("SIGINT", interrupted);
  try {
    const ports = await freePorts(SIZE);
    const members = Object.fromEntries(ports.map((port, at) => [at + 1, `127.0.0.1:${port}`]));
    const failed = ports.map((_, at) =>
      begin({ id: at + 1, members, dataDir: path(folder, `${at + 1}`), timing }, sum, children),
    );
    while (sum.holders < SIZE) await Promise.race([sleep(100), ...failed]);
    for (let loop = 0; loop < loops; loop++) children.push(spawn(process.execPath, ["-e", "for (;;);"]));
    Object.assign(sum, { lost: 0, leaders: 0 });
    sum.wrote.length = 0;
    const until = performance.now() + minutes * 60_000;
    while (performance.now() < until) {
      await Promise.race([sleep(1_000), ...failed]);
      process.stderr.write(
        `\r${timing}: ${Math.max(0, Math.round((until - performance.now()) / 1_000))} s to go, ${sum.lost} sessions lost `,
      );
    }
    process.stderr.write("\n");
    return reportOf(timing, sum);
  } finally {
    process.off("SIGINT", interrupted);
    end();
  }
}

/** @returns what rejects once the member has ended */
function begin(being: Being, sum: Sum, children: ChildProcess[]): Promise<never> {
  const child = fork(process.argv[1] as string, ["--member", JSON.stringify(being)]);
  children.push(child);
  child.on("message", (said) => {
    const note = said as Note;
    if (note.note === "holds") sum.holders += 1;
    else if (note.note === "session-lost") sum.lost += 1;
    else if (note.note === "leader-changed") sum.leaders += 1;
    else sum.wrote.push(note.tookMs);
  });
  const ended = new Promise<never>((_, reject) => {
    child.once("exit", (code) => reject(new Error(`member ${being.id} has ended with code ${code}`)));
  });
  ended.catch(() => {}); // At the end all are killed.
  return ended;
}

function reportOf(timing: Timing, { lost, leaders, wrote }: Sum): string {
  const sorted = wrote.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(0);
  const load = loadavg()[0]?.toFixed(1);
  return `${timing}: ${lost} sessions lost, leader told anew ${leaders} times, ${wrote.length} writes: median ${at(0.5)} ms, most ${at(1)} ms; load ${load}`;
}
