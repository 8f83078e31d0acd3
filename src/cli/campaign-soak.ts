/** A soak is a command of its own: run once for a seed, in a group of processes that ends with it. */
import { spawn } from "node:child_process";
import type { RunResult } from "../experiment/campaign/chunk.ts";
import type { Soak } from "../experiment/campaign/file.ts";

const LOOK_MS = 100;

/** @returns what came of it, or null if it was stopped. A program that cannot be started is a failure of the run. */
export function runSoak(soak: Soak, seed: number, mayGoOn: () => boolean): Promise<RunResult | null> {
  const withSeed = (text: string): string => text.replaceAll("{seed}", String(seed));
  const [program = "", ...args] = soak.command.map(withSeed);
  const own = Object.fromEntries(Object.entries(soak.env).map(([name, value]) => [name, withSeed(value)]));
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: "ignore", detached: true, env: { ...process.env, ...own } });
    let end: (() => RunResult | null) | null = null;
    const kill = (then: () => RunResult | null): void => {
      end ??= then;
      killGroup(child.pid);
    };
    const look = setInterval(() => mayGoOn() || kill(() => null), LOOK_MS);
    const late = setTimeout(() => kill(() => failed(`not done within ${soak.timeoutMs / 1_000} s`)), soak.timeoutMs);
    const settle = (result: RunResult | null): void => {
      clearInterval(look);
      clearTimeout(late);
      killGroup(child.pid); // What it has started ends with it.
      resolve(result);
    };
    child.on("error", (error: NodeJS.ErrnoException) => settle(failed(`cannot be started: ${error.code}`)));
    child.on("close", (code, signal) => {
      if (end !== null) settle(end());
      else if (code === 0) settle({ size: 0, timeMs: null, failures: [] });
      else settle(failed(code === null ? `ended by ${signal}` : `exit code ${code}`));
    });
  });
}

const failed = (what: string): RunResult => ({ size: 0, timeMs: null, failures: [what] });

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
