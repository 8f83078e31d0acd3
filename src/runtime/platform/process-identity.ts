/**
 * Identifies a running process by its start time and its machine's boot, because a pid can be reused. This works among
 * processes that see the same pids. In a separate PID namespace, such as a container, processes have no such identity.
 */
import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";

/** The number of the PID namespace that a machine boots with (PROC_PID_INIT_INO in Linux). */
const FIRST_NAMESPACE = "pid:[4026531836]";
/** The tolerance in hundredths of a second. `ps` rounds to seconds, while Linux counts in exact hundredths. */
const TOLERANCE = 2;

interface Process {
  /** The start time, measured from the machine's boot or from 1970. */
  readonly began: number;
  /** Whether the process has ended but has not yet been reaped by its parent. */
  readonly isOver: boolean;
}

/** Returns the identity of this process. Null in a container, or if the system does not provide an identity. */
export const ownIdentity = (): Promise<string | null> => identityOf(process.pid);

/** @returns the identity of a running process, or null if the process is not running or has no identity */
export async function identityOf(pid: number): Promise<string | null> {
  if (!(await seesMachine())) return null;
  const [boot, found] = [await bootOf(), await processOf(pid)];
  return boot === null || found === null ? null : `${found.began}-${boot}`;
}

/** Whether exactly this process is running, even if it is paused. True if this cannot be determined. */
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

/** Returns an identifier for the machine's boot, or null if the system does not provide one. */
async function bootOf(): Promise<string | null> {
  if (process.platform !== "linux") return "0"; // On other systems, start times are absolute.
  const id = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => null);
  return id?.slice(0, 8) ?? null;
}

/** Whether this process sees the machine's own pids. */
async function seesMachine(): Promise<boolean> {
  if (process.platform !== "linux") return true;
  return (await readlink("/proc/self/ns/pid").catch(() => null)) === FIRST_NAMESPACE;
}

const processOf = (pid: number): Promise<Process | null> =>
  process.platform === "linux" ? fromProc(pid) : fromPs(pid);

/**
 * Parses /proc/PID/stat. After the name in parentheses, field 1 is the state, field 18 the number of threads, and field
 * 20 the start time.
 */
async function fromProc(pid: number): Promise<Process | null> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (text === null) return null;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // A killed process that has a thread in a system call, such as a write, has not ended yet.
  return { began: Number(fields[19]), isOver: /[ZX]/.test(fields[0] ?? "") && Number(fields[17]) <= 1 };
}

/** Uses `ps` to find out when a process started and whether it has ended. */
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
