/**
 * Cleans up after a supervisor that was killed. Members notice by themselves that it is gone, except those that are
 * paused: a tiny shell that reads the members' pids from a pipe wakes them when the pipe ends, so that they notice too,
 * and removes the folder. Waking a process harms nobody, so a pid that is no longer ours does not matter.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { platform } from "node:process";

const SCRIPT = 'while read -r line; do pids=$line; done; for pid in $pids; do kill -CONT "$pid"; done; rm -rf "$0"';

export interface Caretaker {
  /** A folder of this run's own, removed in the end. */
  readonly folder: string;
  /** These processes are the members now. */
  note(pids: readonly number[]): void;
  /** The supervisor has cleaned up by itself, except for the folder. */
  release(): void;
}

export function startCaretaker(): Caretaker {
  const folder = mkdtempSync(join(tmpdir(), "coterie-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  // Windows can neither pause processes nor run the script.
  const shell =
    platform === "win32"
      ? null
      : spawn("/bin/sh", ["-c", SCRIPT, folder], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  shell?.on("error", () => {}); // Without a shell only that last resort is missing.
  shell?.stdin.on("error", () => {});
  shell?.unref();
  let noted = "";
  return {
    folder,
    note(pids) {
      const line = `${pids.join(" ")}\n`;
      if (line !== noted) shell?.stdin.write(line);
      noted = line;
    },
    release() {
      shell?.stdin.end("\n");
      process.off("exit", remove);
      remove();
    },
  };
}
