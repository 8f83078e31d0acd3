/** Runs programs in a world's processes. */
import type { SimulatedProcess } from "./simulated-process.ts";
import type { ProcessTools } from "./world-options.ts";
import { worldTimers } from "./world-timers.ts";

/** A program's process and log. */
export interface AroundProgram {
  readonly process: SimulatedProcess;
  /** Aborted once the member or client that the program uses has ended. */
  readonly used: AbortSignal;
  log(text: string): void;
  /**
   * Called when the program failed because its member or client has ended. Ends the process, which has nothing left to
   * do.
   */
  onEnd(): void;
  /** Called when the program itself has failed. */
  onError(error: unknown): void;
}

/**
 * Starts a program. If it throws, the world ends, unless the cause is that the program's member or client has ended.
 */
export function runProgram(program: (tools: ProcessTools) => unknown, around: AroundProgram): void {
  const { process, used } = around;
  const { clock, random } = process;
  const tools: ProcessTools = {
    ...worldTimers((ms, run) => process.timer(ms, run)),
    now: () => clock.now(),
    random: () => random.fraction(),
    log: (text) => around.log(text),
  };
  Promise.resolve()
    .then(() => program(tools))
    .catch((error: unknown) => {
      if (!process.isAlive) return;
      if (used.aborted) around.onEnd();
      else around.onError(error);
    });
}
