/**
 * Identifies a running process by when it began and by the boot of its machine: its pid alone may be another process's later. All of
 * it is for processes that see the same pids; in a PID namespace of its own, as in a container, there is no such identity.
 */
import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";

/** The PID namespace that a machine boots with has this number (PROC_PID_INIT_INO of Linux). */
const FIRST_NAMESPACE = "pid:[4026531836]";
/** `ps` rounds to seconds; Linux counts hundredths of seconds, and exactly. */
const TOLERANCE = 2;

interface Process {
  /** Since the machine's boot, or since 1970. */
  readonly began: number;
  /** Whether it has ended, and its parent has not noticed yet. */
  readonly isOver: boolean;
}

/** Null in a container, and if the system does not say. */
export const ownIdentity = (): Promise<string | null> => identityOf(process.pid);

export async function identityOf(pid: number): Promise<string | null> {
  if (!(await seesMachine())) return null;
  const [boot, found] = [await bootOf(), await processOf(pid)];
  return boot === null || found === null ? null : `${found.began}-${boot}`;
}

/** Whether this very process runs, paused or not. True if that cannot be found out. */
export async function runs(pid: number, identity: string): Promise<boolean> {
  const [began, boot] = identity.split("-");
  const present = await bootOf();
  if (present !== null && present !== boot) return false;
  if (present === null || !(await seesMachine())) return true;
  if (!exists(pid)) return false;
  const found = await processOf(pid);
  return found === null || (!found.isOver && Math.abs(found.began - Number(began)) <= TOLERANCE);
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Names the boot of the machine; null if the system does not say. */
async function bootOf(): Promise<string | null> {
  if (process.platform !== "linux") return "0"; // When a process began is the time of day there.
  const id = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => null);
  return id?.slice(0, 8) ?? null;
}

/** Whether pids here are the machine's. */
async function seesMachine(): Promise<boolean> {
  if (process.platform !== "linux") return true;
  return (await readlink("/proc/self/ns/pid").catch(() => null)) === FIRST_NAMESPACE;
}

const processOf = (pid: number): Promise<Process | null> =>
  process.platform === "linux" ? fromProc(pid) : fromPs(pid);

/** By /proc/PID/stat: behind the name in parentheses come the state, as the 18th the number of threads, as the 20th the beginning. */
async function fromProc(pid: number): Promise<Process | null> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (text === null) return null;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // A killed process with a thread in a system call, such as a write, has not ended yet.
  return { began: Number(fields[19]), isOver: /[ZX]/.test(fields[0] ?? "") && Number(fields[17]) <= 1 };
}

export function fromPs(pid: number): Promise<Process | null> {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  return new Promise((resolve) =>
    execFile("ps", ["-o", "stat=", "-o", "lstart=", "-p", `${pid}`], { env }, (error, text) => {
      const [, state = "", began = ""] = /^\s*(\S+)\s+(.*\S)/.exec(text) ?? [];
      const seconds = Date.parse(`${began} UTC`) / 1_000;
      resolve(error !== null || Number.isNaN(seconds) ? null : { began: seconds, isOver: state.startsWith("Z") });
    }),
  );
}
