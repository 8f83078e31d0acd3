/**
 * Locks of many names, one after the other, each used once: what a name costs, and what it leaves behind. Members are processes on
 * loopback; the one that works does not serve. At the end some of the names are used again: their tokens must have grown.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "../src/cluster/join.ts";
import type { Member } from "../src/cluster/services/api.ts";
import { commandLine } from "./command-line.ts";
import { freePorts } from "./multicast/group.ts";

interface Being {
  readonly id: number;
  readonly members: Readonly<Record<number, string>>;
  readonly dataDir: string;
}

type Ask =
  | { do: "lock"; from: number; to: number; atOnce: number }
  | { do: "channels"; count: number }
  | { do: "again" }
  | { do: "count" };
type Answer = { leader: number | null; instances: number; heapMb: number; rssMb: number; cpuMs: number; wrong: number };

const SIZE = 3;
/** One in so many is used again at the end. */
const AGAIN_EVERY = 1_000;
const CHANNELS_AT_ONCE = 50;
/** Members keep a channel for ten seconds, for programs that start late. */
const CHANNELS_GO_MS = 20_000;
const LOOK_MS = 2_000;
const MOST = 10_000_000;

const [mode = "", being = ""] = process.argv.slice(2);
if (mode === "--member") await serve(JSON.parse(being) as Being);
else await measure();

async function serve({ id, members, dataDir }: Being): Promise<void> {
  const member = await join({ id, members, dataDir, cluster: "bench", tls: "off" });
  const tokens = new Map<string, number>();
  let wrong = 0;
  const use = async (name: string): Promise<void> => {
    const grant = await member.mutex(name).acquire();
    if (grant.token <= (tokens.get(name) ?? 0)) wrong += 1;
    tokens.set(name, grant.token);
    await grant.release();
  };
  const lock = async (first: number, end: number, step: number): Promise<void> => {
    for (let number = first; number < end; number += step) {
      const name = `invoice-${number}`;
      await use(name);
      if (number % AGAIN_EVERY !== 0) tokens.delete(name);
    }
  };
  const carryOut = async (ask: Ask): Promise<void> => {
    if (ask.do === "lock")
      await Promise.all(Array.from({ length: ask.atOnce }, (_, at) => lock(ask.from + at, ask.to, ask.atOnce)));
    if (ask.do === "channels") await channels(member, ask.count);
    if (ask.do === "again") for (const name of [...tokens.keys()]) await use(name);
    process.send?.(standing(member, wrong));
  };
  process.on("message", (ask: Ask) => void carryOut(ask));
  process.on("disconnect", () => process.exit());
  process.send?.(standing(member, wrong));
}

/** Each is used once, and closed: some at a time, as a program may have them. */
async function channels(member: Member, count: number): Promise<void> {
  for (let first = 0; first < count; first += CHANNELS_AT_ONCE) {
    const open = Array.from({ length: Math.min(CHANNELS_AT_ONCE, count - first) }, (_, at) =>
      member.channel<number>(`room-${first + at}`, { order: "total" }),
    );
    await Promise.all(open.map((channel) => channel.send(1)));
    await Promise.all(open.map((channel) => channel.close()));
  }
}

function standing(member: Member, wrong: number): Answer {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const { leader: leader, instances } = member.status();
  const megabytes = (bytes: number): number => Math.round(bytes / 1e5) / 10;
  return {
    leader,
    instances: instances.length,
    heapMb: megabytes(heapUsed),
    rssMb: megabytes(rss),
    cpuMs: (user + system) / 1_000,
    wrong,
  };
}

async function measure(): Promise<void> {
  const { values, whole } = commandLine("names", {
    names: { such: "N", default: "100000", help: "how many names (100000)" },
    "at-once": { such: "N", default: "1", help: "how many are in use at a time (1)" },
    channels: { such: "N", default: "1000", help: "how many channels are opened and closed then (1000)" },
  });
  const names = whole("names", values.names, 1, MOST);
  const atOnce = whole("at-once", values["at-once"], 1, MOST);
  const channelCount = whole("channels", values.channels, 1, MOST);
  const folder = mkdtempSync(path(tmpdir(), "coterie-names-"));
  const children = new Map<number, ChildProcess>();
  const end = (): void => {
    for (const child of children.values()) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("SIGINT", () => {
    end();
    process.exitCode = 130;
    process.exit();
  });
  try {
    await run({ names, atOnce, channelCount, folder, children });
  } finally {
    end();
  }
}

interface Run {
  readonly names: number;
  readonly atOnce: number;
  readonly channelCount: number;
  readonly folder: string;
  readonly children: Map<number, ChildProcess>;
}

async function run({ names, atOnce, channelCount, folder, children }: Run): Promise<void> {
  const ports = await freePorts(SIZE);
  const members = Object.fromEntries(ports.map((port, index) => [index + 1, `127.0.0.1:${port}`]));
  const dataDirOf = (id: number): string => path(folder, String(id));
  await Promise.all(
    ports.map((_, index) => {
      const id = index + 1;
      const child = fork(
        process.argv[1] as string,
        ["--member", JSON.stringify({ id, members, dataDir: dataDirOf(id) })],
        { execArgv: ["--expose-gc"] },
      );
      children.set(id, child);
      return answer(child);
    }),
  );
  const ask = (id: number, what: Ask): Promise<Answer> => {
    const child = children.get(id) as ChildProcess;
    child.send(what);
    return answer(child);
  };
  await ask(1, { do: "lock", from: -1, to: 0, atOnce: 1 }); // Somebody serves from here on.
  const { leader } = await ask(1, { do: "count" });
  const worker = [1, 2, 3].find((id) => id !== leader) as number;
  const began = performance.now();
  const step = Math.max(1, Math.ceil(names / 20));
  console.log(`${SIZE} members, ${names} names, ${atOnce} at a time; node ${leader} serves, node ${worker} works`);
  console.log("     names     names/s   of each member: instances, heap MB, journal kB");
  for (let done = 0; done < names; ) {
    const to = Math.min(names, done + step);
    const from = performance.now();
    await ask(worker, { do: "lock", from: done, to, atOnce });
    const rate = (to - done) / ((performance.now() - from) / 1_000);
    done = to;
    process.stderr.write(`\r${done} of ${names} names, ${Math.round((performance.now() - began) / 1_000)} s `);
    const all = await Promise.all([1, 2, 3].map((id) => ask(id, { do: "count" })));
    const rows = all.map(({ instances, heapMb }, index) => {
      const journalKb = Math.round(statSync(path(dataDirOf(index + 1), "journal")).size / 1_000);
      return `${instances}, ${heapMb}, ${journalKb}`;
    });
    console.log(`${String(done).padStart(10)} ${rate.toFixed(0).padStart(10)}   ${rows.join(" | ")}`);
  }
  const seconds = (performance.now() - began) / 1_000;
  const { wrong } = await ask(worker, { do: "again" });
  process.stderr.write("\n");
  console.log(`${Math.round(names / seconds)} names/s over ${seconds.toFixed(0)} s`);
  console.log(`${Math.ceil(names / AGAIN_EVERY)} of the names used again: ${wrong} tokens had not grown`);
  const settled = await Promise.all([1, 2, 3].map((id) => ask(id, { do: "count" })));
  console.log(
    `CPU of each member, in all: ${settled.map(({ cpuMs }) => `${(cpuMs / 1_000).toFixed(1)} s`).join(", ")}`,
  );
  if (wrong > 0) process.exitCode = 1;
  const look = async (when: string): Promise<void> => {
    const before = await Promise.all([1, 2, 3].map((id) => ask(id, { do: "count" })));
    await sleep(LOOK_MS);
    const after = await Promise.all([1, 2, 3].map((id) => ask(id, { do: "count" })));
    const rows = after.map(({ instances, heapMb, cpuMs }, index) => {
      const share = (cpuMs - (before[index] as Answer).cpuMs) / LOOK_MS;
      return `${instances}, ${heapMb}, ${(100 * share).toFixed(1)} %`;
    });
    console.log(`${when.padEnd(30)}${rows.join(" | ")}`);
  };
  console.log(`${channelCount} channels; of each member: instances, heap MB, share of a core`);
  await look("before");
  await ask(worker, { do: "channels", count: channelCount });
  await look("all closed");
  await sleep(CHANNELS_GO_MS);
  await look(`${CHANNELS_GO_MS / 1_000} s later`);
}

function answer(child: ChildProcess): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const gone = (code: number | null): void => reject(new Error(`a member has ended with code ${code}`));
    child.once("exit", gone);
    child.once("message", (said) => {
      child.off("exit", gone);
      resolve(said as Answer);
    });
  });
}
