/**
 * Identifies a running process by its start time and the boot of its machine, because a pid can be reused. This works among
 * processes that see the same pids. In a separate PID namespace, such as a container, there is no such identity.
 */
import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";

/** The number of the PID namespace that a machine boots with (PROC_PID_INIT_INO of Linux). */
const FIRST_NAMESPACE = "pid:[4026531836]";
/** `ps` rounds to seconds; Linux counts hundredths of a second, exactly. */
const TOLERANCE = 2;

interface Process {
  /** The start time, since the machine's boot or since 1970. */
  readonly began: number;
  /** Whether the process has ended but its parent has not reaped it yet. */
  readonly isOver: boolean;
}

/** Null in a container, or if the system does not provide it. */
export const ownIdentity = (): Promise<string | null> => identityOf(process.pid);

export async function identityOf(pid: number): Promise<string | null> {
  if (!(await seesMachine())) return null;
  const [boot, found] = [await bootOf(), await processOf(pid)];
  return boot === null || found === null ? null : `${found.began}-${boot}`;
}

/** Whether exactly this process is running, paused or not. True if that cannot be determined. */
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

/** Identifies the boot of the machine. Null if the system does not provide it. */
async function bootOf(): Promise<string | null> {
  if (process.platform !== "linux") return "0"; // There, start times are absolute.
  const id = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => null);
  return id?.slice(0, 8) ?? null;
}

/** Whether this process sees the pids of the machine itself. */
async function seesMachine(): Promise<boolean> {
  if (process.platform !== "linux") return true;
  return (await readlink("/proc/self/ns/pid").catch(() => null)) === FIRST_NAMESPACE;
}

const processOf = (pid: number): Promise<Process | null> =>
  process.platform === "linux" ? fromProc(pid) : fromPs(pid);

/** Parses /proc/PID/stat. After the name in parentheses, field 1 is the state, 18 the number of threads and 20 the start time. */
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
