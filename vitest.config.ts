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

/** Files that measure times, or keep the machine so busy that they disturb others: one at a time. */
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

/** Counts the handles, listeners or memory of its process, or reads them with a module that does. test/tidy/test-rules.test.ts */
const countsProcess = (text: string): boolean =>
  /getActiveResourcesInfo|memoryUsage\(|listenerCount\(|\/(?:open-handles|heap)\.ts"/.test(text);

/** Uses sockets, timers and threads, replaces clocks, or counts what its process has open: each file in a process of its own. */
const ownProcess = [
  ...testsIn(["src/cluster", "src/runtime"]).filter((file) => !isVirtual(textOf(file))),
  ...testsIn(["src", "test/drivers", "test/network", "test/testing"]).filter((file) => countsProcess(textOf(file))),
];

/** Tests of the docs that compute what a page says, and run nothing that was built. */
const computedDocs = testsIn(["test/docs"]).filter((file) => !textOf(file).includes("node:child_process"));

/** In the processes of the tests themselves. */
const inProcess = {
  env: { COTERIE_SEEDS: process.env.COTERIE_SEEDS ?? "20" }, // So few in CI; `COTERIE_SEEDS=1000` runs more.
  testTimeout: TEST_TIMEOUT_MS,
  hookTimeout: TEST_TIMEOUT_MS,
  expect: { poll: { timeout: PATIENCE_MS, interval: 5 } },
  execArgv: ["--expose-gc"],
  setupFiles: ["test/random-replay.ts"],
  maxWorkers: availableParallelism() + 1, // Some wait: members in real time, frames that are lost.
  sequence: { groupOrder: 0 },
};

/** Real processes, ports and browsers. Their files wait more than they work. */
const endToEnd = {
  testTimeout: TEST_TIMEOUT_MS,
  hookTimeout: TEST_TIMEOUT_MS,
  expect: { poll: { timeout: PATIENCE_MS } },
  globalSetup: ["test/fresh-build.ts"],
  maxWorkers: 2 * availableParallelism(),
  sequence: { groupOrder: 1 },
};

/** The files that take longest, the longest first. Vitest starts with these, so that no processor is idle at the end. */
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
 * Files without a test that the `--tags-filter` of a script in package.json selects: Vitest would load each of them, and skip its tests. A
 * file may have long tests if it says `"long"`, or calls what does; with `@module-tag long` it has no others. test/tidy/test-rules.test.ts
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
          isolate: false, // Nothing of it outlives its file, and all of it imports the same: a third of its time.
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
        // Servers that are not ours.
        test: { ...endToEnd, name: "engines", include: ["test/engines/real/**/*.test.ts"], exclude },
      },
      {
        // As many rounds as are requested: each wait has a deadline, and the whole has none.
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
