/** A command that runs only while something is held, and what is said about how it ended. */
import type { Tenure } from "../../cluster/services/api.ts";
import { codeAfter, ExitWith } from "../exit-with.ts";
import type { Interruption } from "./interruption.ts";
import type { Supervisor } from "./supervisor.ts";
import { type Ended, monotonicMs } from "./supervisor-lines.ts";

/** Exit codes of `coterie lock` and `coterie elect` that are not the command's own. */
export const NOT_ACQUIRED = 75;
export const LOST = 76;
const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

export interface SupervisedCommand {
  readonly name: string;
  readonly command: readonly string[];
  readonly graceMs: number;
}

export interface Outcome {
  readonly exitCode: number;
  /** The command was stopped because what it ran under was lost, or could not be confirmed in time. */
  readonly isLost: boolean;
}

/**
 * Runs the command. When this resolves nothing of the command's process group runs any more.
 * @throws ExitWith where the command could not be started, EnvironmentError where its supervisor has failed.
 */
export async function runSupervised(
  { name, command, graceMs }: SupervisedCommand,
  tenure: Tenure,
  supervisor: Supervisor,
  interruption: Interruption,
): Promise<Outcome> {
  await supervisor.ready;
  if (interruption.received !== null) return { exitCode: codeAfter(interruption.received), isLost: false };
  if (tenure.signal.aborted) return { exitCode: LOST, isLost: true };
  const stopFollowing = tenure.onDeadline((deadline) =>
    supervisor.certain(monotonicMs() + deadline - performance.now()),
  );
  let isLost = false;
  const lose = (): void => {
    isLost = true;
    supervisor.stop();
  };
  interruption.handTo(supervisor);
  const running = supervisor.run({ command, env: environment(name, tenure), graceMs });
  tenure.signal.addEventListener("abort", lose);
  try {
    const ended = await running;
    return { exitCode: exitCode(ended, command), isLost: isLost || supervisor.isOverdue };
  } finally {
    interruption.handTo(null);
    tenure.signal.removeEventListener("abort", lose);
    stopFollowing();
  }
}

function environment(name: string, { token }: Tenure): Record<string, string> {
  return { COTERIE_NAME: name, COTERIE_TOKEN: token === null ? "" : String(token) };
}

function exitCode(ended: Ended, command: readonly string[]): number {
  if (ended.type === "not-started") {
    const code = ended.code === "ENOENT" ? NOT_FOUND : NOT_EXECUTABLE;
    throw new ExitWith(code, `cannot run ${command[0]}: ${WHY[ended.code] ?? "the system refuses"} (${ended.code})`);
  }
  return ended.code ?? codeAfter(ended.signal as NodeJS.Signals);
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: "there is no such command",
  EACCES: "it cannot be executed",
  E2BIG: "its arguments are too long",
};
