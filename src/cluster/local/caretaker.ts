/**
 * Cleans up after a supervisor that was killed. Running members detect on their own that the supervisor has ended, but
 * paused ones cannot. A small shell script therefore reads the members' pids from a pipe. When the pipe ends, the
 * script resumes those processes, so that they detect it too, and removes the folder. SIGCONT is harmless, so reused
 * pids do not matter.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { platform } from "node:process";

const SCRIPT = 'while read -r line; do pids=$line; done; for pid in $pids; do kill -CONT "$pid"; done; rm -rf "$0"';

/** Removes a run's folder and resumes paused members after the supervisor has ended. */
export interface Caretaker {
  /** The run's folder, which is removed at exit. */
  readonly folder: string;
  /** Updates the members' current pids. */
  note(pids: readonly number[]): void;
  /** Removes the folder. Called after the supervisor has cleaned up. */
  release(): void;
}

/** Starts the caretaker process. */
export function startCaretaker(): Caretaker {
  const folder = mkdtempSync(join(tmpdir(), "coterie-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  // Windows can neither pause processes nor run the script.
  const shell =
    platform === "win32"
      ? null
      : spawn("/bin/sh", ["-c", SCRIPT, folder], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  shell?.on("error", () => {}); // Without a shell, the run continues without this cleanup.
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
