/**
 * Runs the command line in this process. Returns a command's output and exit code without starting a process for each.
 */
import { runCommand } from "../../src/cli/command-line.ts";
import type { Output } from "../../src/cli/output.ts";

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** For commands that compute and print. Long work blocks this process until it is done. */
export async function coterie(...words: string[]): Promise<Ended> {
  const [stdout, stderr] = [new Written(), new Written()];
  const code = await runCommand({ words, stdout, stderr, usesThreads: false });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

class Written implements Output {
  text = "";

  write(content: string | Uint8Array): void {
    this.text += typeof content === "string" ? content : Buffer.from(content).toString("latin1");
  }
}
