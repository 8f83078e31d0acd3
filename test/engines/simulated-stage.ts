/** The simulated engine, and processes in the same virtual time, with the interface that the suites need. */
import type { EngineMember } from "../../src/index.ts";
import { type Away, type CounterStage, fencedCounter, type Network, SESSION_MS } from "./fenced-counter.ts";
import type { OutageStage } from "./outages.ts";
import { RESTORING_MS, type RestoreStage } from "./restores.ts";
import type { SimulatedEngine, SimulatedProcess } from "./simulated-engine.ts";

export function simulatedStage(engine: SimulatedEngine): OutageStage & RestoreStage {
  let saved = engine.backUp();
  const server: Away = {
    pause: () => {
      engine.isDown = true;
    },
    resume: () => {
      engine.isDown = false;
    },
    kill: () => {
      engine.isDown = true;
      return Promise.resolve();
    },
    start: () => {
      engine.isDown = false;
      return Promise.resolve();
    },
  };
  const time = { now: () => engine.time.now, sleep: (ms: number) => engine.sleep(ms) };
  const counting: CounterStage = {
    ...time,
    server,
    async begin(hear) {
      const process = { isUp: true };
      const member = await engine.join({ sessionMs: SESSION_MS }, process);
      const over = new AbortController();
      const ask = async (token: number, value: number | null): Promise<number> => {
        const answered = await new Promise<number>((answer) => hear({ token, value, answer }));
        while (!process.isUp) await engine.sleep(10);
        return answered;
      };
      void count(engine, member, ask, over.signal);
      return {
        network: networkOf(process),
        kill() {
          over.abort();
          process.isUp = false;
        },
        stop() {
          process.isUp = false;
        },
        goOn() {
          process.isUp = true;
        },
      };
    },
  };
  return {
    ...time,
    server,
    join: (sessionMs) => engine.join({ sessionMs }),
    async joinBehind(sessionMs) {
      const process = { isUp: true };
      return { member: await engine.join({ sessionMs }, process), network: networkOf(process) };
    },
    count: () => fencedCounter(counting),
    backUp() {
      saved = engine.backUp();
      return Promise.resolve();
    },
    async restore() {
      engine.isDown = true;
      await engine.sleep(RESTORING_MS);
      engine.restore(saved);
      engine.isDown = false;
    },
  };
}

/** Counts like `real/counting-process.ts`. */
async function count(
  engine: SimulatedEngine,
  member: EngineMember,
  ask: (token: number, value: number | null) => Promise<number>,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    const lock = await member.mutex("counter").acquire();
    if (over.aborted) return;
    const value = await ask(lock.token, null);
    await engine.sleep(20);
    if (value >= 0 && !over.aborted) await ask(lock.token, value + 1);
    if (!over.aborted) await lock.release();
  }
}

const networkOf = (process: SimulatedProcess): Network => ({
  cut() {
    process.isCutOff = true;
  },
  heal() {
    process.isCutOff = false;
  },
  reset() {
    process.resets = (process.resets ?? 0) + 1;
  },
});
