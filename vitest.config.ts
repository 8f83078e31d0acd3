import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { countsReporter } from "./test/counts-reporter.ts";
import { PATIENCE_MS, TEST_TIMEOUT_MS } from "./test/patience.ts";
import { seededBugs } from "./test/seeded-bugs/patch.ts";
import { laterRelease } from "./test/testing/later-release.ts";

const root = fileURLToPath(new URL(".", import.meta.url));

/** Test files that run one at a time, because they measure times or keep the machine too busy for others. */
const alone = [
  "test/e2e/bench-*.test.ts",
  "test/e2e/{elect-splits,names,releases,stale-writes}.test.ts",
  "test/browser/{site,studio-at-rest}.test.ts",
];

/** Returns the test files below these folders. */
const testsIn = (folders: readonly string[]): string[] =>
  folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((file) => `${folder}/${file}`)
      .filter((file) => file.endsWith(".test.ts")),
  );
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

/** Returns whether a file runs its members in virtual time and does not use test/network. */
const isVirtual = (text: string): boolean =>
  /from "[./]+\/testing\/index\.ts"/.test(text) && !/\/test\/network\//.test(text);

/**
 * Returns whether a file counts the handles, listeners or memory of its process. Checked by
 * test/tidy/test-rules.test.ts.
 */
const countsProcess = (text: string): boolean =>
  /getActiveResourcesInfo|memoryUsage\(|listenerCount\(|\/(?:open-handles|heap)\.ts"/.test(text);

/**
 * Files that run in their own process: they use sockets, timers or threads, replace clocks, or count open handles or
 * memory.
 */
const ownProcess = [
  ...testsIn(["src/cluster", "src/runtime"]).filter((file) => !isVirtual(textOf(file))),
  ...testsIn(["src", "test/drivers", "test/network", "test/testing"]).filter((file) => countsProcess(textOf(file))),
];

/** Tests of the docs that compute the text of a page and do not run the build. */
const computedDocs = testsIn(["test/docs"]).filter((file) => !textOf(file).includes("node:child_process"));

/** Settings for tests that run in Vitest's own worker processes. */
const inProcess = {
  env: { COTERIE_SEEDS: process.env.COTERIE_SEEDS ?? "20" }, // Enough for CI; `COTERIE_SEEDS=1000` runs more.
  testTimeout: TEST_TIMEOUT_MS,
  hookTimeout: TEST_TIMEOUT_MS,
  expect: { poll: { timeout: PATIENCE_MS, interval: 5 } },
  execArgv: ["--expose-gc"],
  setupFiles: ["test/random-replay.ts"],
  maxWorkers: availableParallelism() + 1, // Some tests only wait, for members in real time or for lost frames.
  sequence: { groupOrder: 0 },
};

/** Settings for tests with real processes, ports and browsers. They wait more than they compute. */
const endToEnd = {
  testTimeout: TEST_TIMEOUT_MS,
  hookTimeout: TEST_TIMEOUT_MS,
  expect: { poll: { timeout: PATIENCE_MS } },
  globalSetup: ["test/fresh-build.ts"],
  maxWorkers: 2 * availableParallelism(),
  sequence: { groupOrder: 1 },
};

/** The slowest files, slowest first. Vitest starts with these, so that no CPU is idle at the end. */
const slowest = [
  "test/seeded-bugs/seeded-bugs.test.ts",
  "src/protocols/member/whole/member.test.ts",
  "test/docs/assumptions.test.ts",
  "src/protocols/consensus/raft/exploration.test.ts",
  "test/e2e/pbft-liars.test.ts",
  "test/e2e/members-soak.test.ts",
  "test/engines/real/zookeeper-cluster.test.ts",
  "test/engines/real/zookeeper.test.ts",
  "test/engines/real/etcd.test.ts",
  "test/engines/real/postgres.test.ts",
  "test/commands/bench.test.ts",
  "test/e2e/etcd-clients-soak.test.ts",
];

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = slowest.findIndex((file) => moduleId.endsWith(`/${file}`));
      if (at >= 0) return at;
      return /^(?:\/\/| [*]) *@module-tag long/m.test(readFileSync(moduleId, "utf8")) ? slowest.length : Infinity;
    };
    const sorted = await super.sort(files);
    return sorted
      .map((file) => ({ file, rank: rank(file) }))
      .sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0))
      .map(({ file }) => file);
  }
}

const SAYS_LONG = /"long"|test\/protocols\/sizes\.ts"/;

/**
 * Returns the files without a test that `--tags-filter` selects: Vitest would load each of them only to skip its tests.
 * A file may have long tests if it contains `"long"` or imports sizes.ts; with `@module-tag long`, all its tests are
 * long. Checked by test/tidy/test-rules.test.ts.
 */
function filesWithout(filter: string | undefined): string[] {
  const isForLong = filter?.startsWith("long");
  if (!isForLong && !filter?.startsWith("!long")) return [];
  return testsIn(["src", "test", "studio", "site", "skeletons", "examples"]).filter((file) => {
    const text = textOf(file);
    const isLong = /^(?:\/\/| [*]) *@module-tag long/m.test(text);
    return isForLong ? !isLong && !SAYS_LONG.test(text) : isLong;
  });
}
const exclude = filesWithout(process.argv[process.argv.indexOf("--tags-filter") + 1]);

/** The package's entry points, so that examples that are tests import the sources. */
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
    sequence: { sequencer: SlowestFirst },
    tags: [
      { name: "long", description: "takes long: left out by `npm test`, run by `npm run test:long`" },
      { name: "larger", description: "more seeds or larger bounds than CI has: run by `npm run test:random`" },
    ],
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
            ...computedDocs,
          ],
          exclude: [...ownProcess, ...exclude],
          isolate: false, // Tests leave no state behind and share their imports, which takes a third of the time.
        },
      },
      {
        test: { ...inProcess, name: "members", include: ownProcess, exclude },
      },
      {
        test: { ...endToEnd, name: "commands", include: ["test/commands/**/*.test.ts"], exclude },
      },
      {
        test: {
          ...endToEnd,
          name: "e2e",
          include: ["test/{package,e2e,browser,docs}/**/*.test.ts"],
          exclude: ["test/e2e/*soak.test.ts", ...alone, ...computedDocs, ...exclude],
        },
      },
      {
        // Tests against real servers of other projects.
        test: { ...endToEnd, name: "engines", include: ["test/engines/real/**/*.test.ts"], exclude },
      },
      {
        // Clients of etcd that others wrote.
        test: { ...endToEnd, name: "clients", include: ["test/clients/**/*.test.ts"], exclude },
      },
      {
        // Soaks run as many rounds as requested. Each wait has a deadline, but the whole test has none.
        test: { ...endToEnd, name: "soaks", include: ["test/e2e/*soak.test.ts"], exclude, testTimeout: 0 },
      },
      {
        test: {
          ...endToEnd,
          name: "alone",
          include: alone,
          exclude,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
