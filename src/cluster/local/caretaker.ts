/**
 * Cleans up after a supervisor that was killed. Members detect by themselves that it is gone, except paused ones. So a
 * small shell script reads the members' pids from a pipe. When the pipe ends, it resumes those processes, so that they
 * detect it too, and removes the folder. SIGCONT is harmless, so a pid that has been reused does not matter.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { platform } from "node:process";

const SCRIPT = 'while read -r line; do pids=$line; done; for pid in $pids; do kill -CONT "$pid"; done; rm -rf "$0"';

export interface Caretaker {
  /** A folder of this run, removed at exit. */
  readonly folder: string;
  /** The current processes of the members. */
  note(pids: readonly number[]): void;
  /** The supervisor has cleaned up, except for the folder. */
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
  shell?.on("error", () => {}); // Without a shell, only this safeguard is missing.
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
