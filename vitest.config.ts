import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { countsReporter } from "./test/counts-reporter.ts";
import { seededBugs } from "./test/seeded-bugs/patch.ts";
import { laterRelease } from "./test/testing/later-release.ts";

const seconds = 1_000;
const root = fileURLToPath(new URL(".", import.meta.url));

/** What harms members for minutes, and waits for them to get on: two at a time. */
const soaks = ["test/e2e/*soak.test.ts"];

/** What measures times, or keeps the machine so busy that others measure it: one file at a time. */
const alone = [
  "test/e2e/bench-*.test.ts",
  "test/e2e/{elect-splits,names,releases,stale-writes}.test.ts",
  "test/browser/studio-at-rest.test.ts",
];

/** Files of tests below these folders. */
const testsIn = (folders: readonly string[]): string[] =>
  folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((file) => `${folder}/${file}`)
      .filter((file) => file.endsWith(".test.ts")),
  );
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

/** Has members in virtual time, and nothing of test/network. */
const isVirtual = (text: string): boolean =>
  /from "[./]+\/testing\/index\.ts"/.test(text) && !/\/test\/network\//.test(text);

/** What has sockets, timers and threads, counts them, and replaces clocks: each file in a process of its own. */
const members = testsIn(["src/cluster", "src/runtime"]).filter((file) => !isVirtual(textOf(file)));

/** In the processes of the tests themselves. */
const inProcess = {
  env: { COTERIE_SEEDS: process.env.COTERIE_SEEDS ?? "20" }, // Of a thousand, where somebody waits.
  testTimeout: 600 * seconds, // For what hangs. Some work through all cases for a minute, on a machine that others use, too.
  hookTimeout: 120 * seconds, // Some start members, and close them.
  execArgv: ["--expose-gc"],
  setupFiles: ["test/random-replay.ts"],
  maxWorkers: availableParallelism() + 1, // Some wait: members in real time, frames that are lost.
  sequence: { groupOrder: 0 },
};

/** Real processes, ports and browsers. */
const endToEnd = { testTimeout: 300 * seconds, hookTimeout: 120 * seconds, globalSetup: ["test/fresh-build.ts"] };

const SAYS_LONG = /"long"|test\/protocols\/sizes\.ts"/;

/**
 * Files none of whose tests run under `--tags-filter long` or `!long`: Vitest would load each of them, and skip what is in it. A file
 * may have long tests if it says `"long"`, or calls what does; with `@module-tag long` it has no others. test/tidy/long-tests.test.ts
 */
function filesWithout(filter: string | undefined): string[] {
  if (filter !== "long" && filter !== "!long") return [];
  return testsIn(["src", "test", "studio", "site", "skeletons", "examples"]).filter((file) => {
    const text = textOf(file);
    const isLong = /^(?:\/\/| [*]) *@module-tag long/m.test(text);
    return filter === "long" ? !isLong && !SAYS_LONG.test(text) : isLong;
  });
}
const exclude = filesWithout(process.argv[process.argv.indexOf("--tags-filter") + 1]);

/** What users import, for examples that are tests. */
const ownSources = [
  { find: /^coterie$/, replacement: fileURLToPath(new URL("src/index.ts", import.meta.url)) },
  { find: /^coterie\/client$/, replacement: fileURLToPath(new URL("src/client/index.ts", import.meta.url)) },
  { find: /^coterie\/runtime$/, replacement: fileURLToPath(new URL("src/cluster/runtime.ts", import.meta.url)) },
  { find: /^coterie\/testing$/, replacement: fileURLToPath(new URL("src/testing/index.ts", import.meta.url)) },
];

export default defineConfig({
  test: {
    allowOnly: false,
    reporters: ["default", countsReporter],
    tags: [{ name: "long", description: "takes long: left out by `npm test`, run by `npm run test:long`" }],
    projects: [
      {
        plugins: [seededBugs(), laterRelease()],
        resolve: { alias: ownSources },
        test: {
          ...inProcess,
          name: "unit",
          include: [
            "{src,skeletons,site,studio,examples}/**/*.test.ts",
            "test/{tidy,seeded-bugs,drivers,network,testing,protocols}/**/*.test.ts",
            "test/engines/*.test.ts",
          ],
          exclude: [...members, ...exclude],
          isolate: false, // Nothing of it outlives its file, and all of it imports the same: a third of its time.
        },
      },
      {
        test: { ...inProcess, name: "members", include: members, exclude },
      },
      {
        // What a command says: it takes its time, and nothing depends on how long.
        test: {
          ...endToEnd,
          name: "commands",
          include: ["test/commands/**/*.test.ts"],
          exclude,
          maxWorkers: availableParallelism(),
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...endToEnd,
          name: "e2e",
          include: ["test/{package,e2e,browser,docs}/**/*.test.ts"],
          exclude: [...soaks, ...alone, ...exclude],
          maxWorkers: availableParallelism() + 1, // They wait more than they work.
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Engines that others run: servers of their own.
        test: {
          name: "engines",
          globalSetup: ["test/fresh-build.ts"], // What is packed is what was built.
          include: ["test/engines/real/**/*.test.ts"],
          exclude,
          testTimeout: 300 * seconds,
          hookTimeout: 120 * seconds,
          maxWorkers: availableParallelism() + 1, // They wait for sessions and leases to run out.
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          ...endToEnd,
          name: "soaks",
          include: soaks,
          exclude,
          maxWorkers: 2,
          sequence: { groupOrder: 5 },
        },
      },
      {
        test: {
          ...endToEnd,
          name: "alone",
          include: alone,
          exclude,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
