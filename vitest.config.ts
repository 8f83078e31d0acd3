import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { countsReporter } from "./test/counts-reporter.ts";
import { seededBugs } from "./test/seeded-bugs/patch.ts";

const seconds = 1_000;

export default defineConfig({
  test: {
    allowOnly: false,
    reporters: ["default", countsReporter],
    projects: [
      {
        plugins: [seededBugs()],
        test: {
          name: "unit",
          include: ["{src,studio}/**/*.test.ts", "test/{tidy,seeded-bugs,drivers}/**/*.test.ts"],
          testTimeout: 120 * seconds, // Some work through all cases, on a machine that others use, too.
          execArgv: ["--expose-gc"],
          setupFiles: ["test/random-replay.ts"],
          // Vitest leaves one processor free, which is half of a small machine.
          maxWorkers: availableParallelism(),
          sequence: { groupOrder: 0 },
        },
      },
      {
        // What a command says: it takes its time, and nothing depends on how long.
        test: {
          name: "commands",
          include: ["test/commands/**/*.test.ts"],
          testTimeout: 120 * seconds,
          hookTimeout: 120 * seconds,
          maxWorkers: availableParallelism(),
          sequence: { groupOrder: 1 },
        },
      },
      {
        // Real processes, ports and browsers: one file at a time, so that none measures the load of another.
        test: {
          name: "e2e",
          include: ["test/{package,e2e,browser,docs}/**/*.test.ts"],
          testTimeout: 120 * seconds,
          hookTimeout: 120 * seconds,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
