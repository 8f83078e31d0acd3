/** The real platform: the clocks, sockets and disk of this process. */
import { randomInt, randomUUID } from "node:crypto";
import { datagrams } from "./datagrams.ts";
import { disk } from "./disk.ts";
import { network } from "./network.ts";
import type { Platform } from "./platform.ts";
import { wallClock } from "./wall-clock.ts";

/** The platform of every process outside tests. */
export const realPlatform: Platform = {
  clock: {
    now: () => performance.now(),
    wall: () => Date.now(),
    stamp: wallClock,
  },
  timers: {
    after: (ms, run) => setTimeout(run, ms),
    every: (ms, run) => setInterval(run, ms),
    soon: (run) => setImmediate(run),
    cancel(timer) {
      // The timer is a timeout or an immediate. In this order, the call for the wrong kind has no effect.
      clearTimeout(timer as unknown as NodeJS.Timeout);
      clearImmediate(timer as unknown as NodeJS.Immediate);
    },
  },
  random: {
    fraction: () => Math.random(),
    natural: (below) => randomInt(below),
    name: () => randomUUID(),
  },
  network,
  disk,
  datagrams,
};
