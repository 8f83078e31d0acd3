/**
 * The supervisor, a small process between `coterie` and the command that runs under its grant. Even if `coterie` is
 * killed, paused or stuck, the command must not continue without a grant. The supervisor therefore has a pipe to
 * `coterie` and knows until when the grant is certain:
 *
 *    the pipe ends             SIGKILL immediately
 *    the grant is nearly over  SIGTERM, then SIGKILL before it is over
 *    the command has ended     SIGKILL for the remaining processes in its process group
 *
 * The command leads its own session and process group, and every signal is sent to the whole group. Signals from the
 * terminal reach `coterie`, which forwards them through the pipe.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { platform } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { eachLine } from "../../cluster/local/lines.ts";
import {
  type Ended,
  type FromSupervisor,
  LONGEST_TIMER_MS,
  MAX_LINE_LENGTH,
  monotonicMs,
  type Order,
  PIPE,
  type ToSupervisor,
} from "./supervisor-lines.ts";

/** How long before the grant ends SIGKILL is sent, since a busy machine may wake the supervisor late. */
const KILL_EARLY_MS = 25;
/** A killed process ends within this time, unless it is waiting for the disk. */
const GONE_WITHIN_MS = 1_000;
const LOOK_AGAIN_MS = 2;

const pipe = new Socket({ fd: PIPE });
let child: ChildProcess | null = null;
let order: Order | null = null;
/** When the command is to get SIGTERM and SIGKILL, in `monotonicMs`. */
let warnAt = Number.POSITIVE_INFINITY;
let latest = Number.POSITIVE_INFINITY;
let terminatedAt: number | null = null;
let timer: NodeJS.Timeout | undefined;

// A signal sent to all processes of a service is meant for the command. The supervisor ignores it and waits for the
// command to end.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

eachLine(pipe, MAX_LINE_LENGTH, (line) => take(JSON.parse(line) as ToSupervisor));
pipe.on("error", () => {}); // A `close` event follows.
pipe.on("close", () => {
  if (child === null) process.exit();
  signalGroup("SIGKILL");
});
tell({ type: "ready", at: monotonicMs() });

function take(word: ToSupervisor): void {
  switch (word.type) {
    case "run":
      return run(word);
    case "certain":
      hold(word.until);
      return watch();
    case "signal":
      return void signalGroup(word.name);
    case "stop":
      return terminate();
    case "kill":
      return void signalGroup("SIGKILL");
  }
}

function run(wanted: Order): void {
  order = wanted;
  hold(wanted.until);
  if (monotonicMs() >= warnAt) {
    tell({ type: "overdue" });
    return end({ type: "ended", code: null, signal: "SIGTERM" }); // The command would be stopped as soon as it started.
  }
  const fail = (error: NodeJS.ErrnoException): void => end({ type: "not-started", code: error.code ?? error.message });
  try {
    child = started(wanted);
  } catch (error) {
    return fail(error as Error); // `spawn` throws some errors, such as E2BIG.
  }
  child.on("exit", (code, signal) => void sweep().then(() => end({ type: "ended", code, signal })));
  const { pid } = child;
  if (pid === undefined) return void child.on("error", fail);
  tell({ type: "started", pid });
  watch();
}

function started({ command, env }: Order): ChildProcess {
  const [file = "", ...args] = command;
  return spawn(file, args, { stdio: "inherit", detached: true, env: { ...process.env, ...env } });
}

/**
 * Sets the time until which the grant is certain. The command gets SIGTERM one grace period before SIGKILL, or when
 * three quarters of the time until SIGKILL have passed, whichever is later. Leases are short and confirmed repeatedly,
 * so with an earlier SIGTERM, the command would be stopped between two confirmations.
 */
function hold(moment: number | null): void {
  if (moment === null) return;
  latest = moment - KILL_EARLY_MS;
  warnAt = latest - Math.min(order?.graceMs ?? 0, Math.max(0, latest - monotonicMs()) / 4);
}

/** Acts on deadlines that have passed, and schedules the next one. */
function watch(): void {
  clearTimeout(timer);
  if (order === null || child === null) return;
  const now = monotonicMs();
  if (terminatedAt === null && now >= warnAt) {
    tell({ type: "overdue" }); // Send this even if the supervisor wakes up so late that only SIGKILL is left.
    return terminate();
  }
  const killAt = terminatedAt === null ? latest : Math.min(latest, terminatedAt + order.graceMs);
  if (now >= killAt) return void signalGroup("SIGKILL");
  const next = terminatedAt === null ? warnAt : killAt;
  if (next < Number.POSITIVE_INFINITY) timer = setTimeout(watch, Math.min(Math.ceil(next - now), LONGEST_TIMER_MS));
}

function terminate(): void {
  if (terminatedAt !== null) return;
  terminatedAt = monotonicMs();
  signalGroup("SIGTERM");
  signalGroup("SIGCONT"); // Wake a paused command, which would otherwise get SIGTERM too late.
  watch();
}

/** Sends a signal to the process group. Returns whether the group had a process to receive it. */
function signalGroup(name: NodeJS.Signals): boolean {
  const { pid } = child ?? {};
  if (pid === undefined) return false;
  try {
    return process.kill(-pid, name);
  } catch {
    return false; // ESRCH: the group is empty.
  }
}

/** Kills the rest of the process group, so that none of it is still running when the grant is released. */
async function sweep(): Promise<void> {
  clearTimeout(timer);
  const deadline = monotonicMs() + GONE_WITHIN_MS;
  while (signalGroup("SIGKILL") && hasLiving() && monotonicMs() < deadline) await sleep(LOOK_AGAIN_MS);
}

/** Whether the group has processes other than zombies, as far as this can be determined. */
function hasLiving(): boolean {
  if (platform !== "linux") return true;
  return readdirSync("/proc").some((entry) => {
    try {
      const stat = /^\d/.test(entry) ? readFileSync(`/proc/${entry}/stat`, "latin1") : "";
      const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // A process name may contain parentheses.
      return Number(group) === child?.pid && state !== "Z" && state !== "X";
    } catch {
      return false; // The process has ended in the meantime.
    }
  });
}

function tell(word: FromSupervisor): void {
  if (!pipe.destroyed) pipe.write(`${JSON.stringify(word)}\n`);
}

/**
 * Sends the last message. When `coterie` receives it, it closes the pipe, and then the supervisor ends. If the
 * supervisor closed the pipe first, a write by `coterie` would fail, and messages that it has not read yet, because it
 * was paused, would be lost.
 */
function end(word: Ended): void {
  child = null;
  if (pipe.destroyed) process.exit();
  tell(word);
}
