/**
 * Determines which processes are paused (SIGSTOP), according to the operating system. Any program may pause a process.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { platform } from "node:process";

/** The interval between checks. Reading `/proc` takes microseconds, whereas `ps` starts a process. */
export const lookEveryMs = platform === "linux" ? 200 : 1_000;

/** @returns the given processes that are paused. Empty on Windows */
export async function stoppedAmong(pids: readonly number[]): Promise<Set<number>> {
  if (pids.length === 0 || platform === "win32") return new Set();
  const letters = platform === "linux" ? await lettersFromProc(pids) : await lettersFromPs(pids);
  return new Set(pids.filter((pid) => /^[Tt]/.test(letters.get(pid) ?? "")));
}

async function lettersFromProc(pids: readonly number[]): Promise<Map<number, string>> {
  const found = await Promise.all(
    pids.map(async (pid): Promise<[number, string]> => {
      const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
      // The format is `pid (name) state …`, and the name may contain parentheses.
      return [pid, stat.slice(stat.lastIndexOf(")") + 2)];
    }),
  );
  return new Map(found);
}

function lettersFromPs(pids: readonly number[]): Promise<Map<number, string>> {
  return new Promise((resolve) => {
    execFile("ps", ["-o", "pid=,state=", "-p", pids.join(",")], (_error, stdout) => {
      const rows = stdout.matchAll(/^\s*(\d+)\s+(\S+)/gm);
      resolve(new Map([...rows].map(([, pid, letters]) => [Number(pid), letters as string])));
    });
  });
}
