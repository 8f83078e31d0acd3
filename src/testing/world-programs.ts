/** Runs programs in the processes of a world. */
import type { SimulatedProcess } from "./simulated-process.ts";
import type { ProcessTools } from "./world-options.ts";
import { worldTimers } from "./world-timers.ts";

export interface AroundProgram {
  readonly process: SimulatedProcess;
  /** Aborted once the member or client that the program uses has ended. */
  readonly used: AbortSignal;
  log(text: string): void;
  /** The program failed because its member or client ended: its process ends, since it has nothing left to do. */
  onEnd(): void;
  /** The program itself failed. */
  onError(error: unknown): void;
}

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
