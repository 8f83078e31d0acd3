/**
 * Three members on a busy machine: counts the sessions that expire under each timing. A member that loses its session loses its locks
 * and leaderships. Each member holds one lock and writes once a second, while busy loops compete for the processors.
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

interface MemberOptions {
  readonly id: number;
  readonly members: Readonly<Record<number, string>>;
  readonly dataDir: string;
  readonly timing: Timing;
}

/** A member sends one for each event. */
type Notification =
  | { note: "holds" }
  | { note: "session-lost" }
  | { note: "leader-changed" }
  | { note: "wrote"; tookMs: number };

/** Totals of all members under one timing. Write times are in milliseconds. */
interface Measurement {
  holders: number;
  lost: number;
  leaders: number;
  readonly wrote: number[];
}

const [mode = "", options = ""] = process.argv.slice(2);
if (mode === "--member") await runMember(JSON.parse(options) as MemberOptions);
else await measure();

async function runMember({ id, members, dataDir, timing }: MemberOptions): Promise<void> {
  const member = await join({ id, members, dataDir, timing, cluster: "bench", tls: "off" });
  const notify = (note: Notification): void => void process.send?.(note);
  process.on("disconnect", () => process.exit());
  void (async () => {
    for await (const { type } of member.events()) {
      if (type === "session-lost") notify({ note: "session-lost" });
      if (type === "log-leader-changed") notify({ note: "leader-changed" });
    }
  })();
  void (async () => {
    for (;;) {
      const grant = await member.mutex(`of ${id}`).acquire({ timeoutMs: WRITE_MS });
      notify({ note: "holds" });
      await new Promise<void>((resolve) => grant.signal.addEventListener("abort", () => resolve()));
    }
  })();
  for (let n = 0; ; n++) {
    const began = performance.now();
    await member.map<number>("numbers").put(`of ${id}`, n, { timeoutMs: WRITE_MS });
    notify({ note: "wrote", tookMs: performance.now() - began });
    await sleep(WRITE_EVERY_MS);
  }
}

async function measure(): Promise<void> {
  const { values, whole, amount, someOf } = commandLine("busy", {
    loops: { such: "N", default: "8", help: "how many busy loops run next to the members (8)" },
    minutes: { such: "N", default: "10", help: "how long, for each timing (10)" },
    timings: { such: "LIST", default: "default", help: `of ${timings.join(",")} (default)` },
  });
  const loops = whole("loops", values.loops, 0, 1_000);
  const minutes = amount("minutes", values.minutes, 10_000);
  console.log(`${SIZE} members and ${loops} busy loops on ${availableParallelism()} processors, ${minutes} min each`);
  for (const timing of someOf("timings", values.timings, timings)) console.log(await under(timing, loops, minutes));
}

async function under(timing: Timing, loops: number, minutes: number): Promise<string> {
  const folder = mkdtempSync(path(tmpdir(), "coterie-busy-"));
  const children: ChildProcess[] = [];
  const sum: Measurement = { holders: 0, lost: 0, leaders: 0, wrote: [] };
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
      start({ id: at + 1, members, dataDir: path(folder, `${at + 1}`), timing }, sum, children),
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

/** Starts a member. @returns a promise that rejects when its process exits */
function start(options: MemberOptions, sum: Measurement, children: ChildProcess[]): Promise<never> {
  const child = fork(process.argv[1] as string, ["--member", JSON.stringify(options)]);
  children.push(child);
  child.on("message", (message) => {
    const note = message as Notification;
    if (note.note === "holds") sum.holders += 1;
    else if (note.note === "session-lost") sum.lost += 1;
    else if (note.note === "leader-changed") sum.leaders += 1;
    else sum.wrote.push(note.tookMs);
  });
  const ended = new Promise<never>((_, reject) => {
    child.once("exit", (code) => reject(new Error(`member ${options.id} ended with code ${code}`)));
  });
  ended.catch(() => {}); // All members are killed when the measurement ends.
  return ended;
}

function reportOf(timing: Timing, { lost, leaders, wrote }: Measurement): string {
  const sorted = wrote.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(0);
  const load = loadavg()[0]?.toFixed(1);
  return `${timing}: ${lost} sessions lost, ${leaders} leader changes reported, ${wrote.length} writes: median ${at(0.5)} ms, most ${at(1)} ms; load ${load}`;
}
