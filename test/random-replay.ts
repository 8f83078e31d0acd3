/**
 * Random tests have one seed, so that a change is refused for what it does and not by lot: two runs over the same code try
 * the same inputs. Fresh seeds are for `npm run test:random`, which gives each of its rounds one in `FC_SEED`.
 *
 * They say with which command their failure is replayed, and `FC_SEED` and `FC_PATH` replay it: the seed is that of every
 * property of the tests that run, the path leads to the one counterexample. `test/random-soak` has their names noted, in a
 * file that `COTERIE_RANDOM_TESTS` says.
 */
import { relative } from "node:path";
import fc from "fast-check";
import { expect } from "vitest";
import { noteRandomTest, patternOf } from "./random-seeds.ts";

/** Any number would do. Another one is another sample; none is better for a test that a fresh seed makes fail. */
const SEED = 20_150_103;

const { FC_SEED: seed = SEED, FC_PATH: path } = process.env;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const reportReplay: Parameters<typeof fc.installGlobalPlugin>[0] = () => ({
  onAllRunsComplete(details) {
    const { testPath = "FILE", currentTestName = "NAME" } = expect.getState();
    const pattern = patternOf(currentTestName);
    noteRandomTest();
    if (!details.failed) return;
    const where = details.counterexamplePath === null ? "" : ` FC_PATH=${details.counterexamplePath}`;
    const command = `FC_SEED=${details.seed}${where} npx vitest run ${relative(process.cwd(), testPath)} -t ${quoted(pattern)}`;
    const error = new Error(`${fc.defaultReportMessage(details)}\n\nReplay: ${command}`);
    if (details.errorInstance !== null) error.cause = details.errorInstance;
    throw error;
  },
});

/** Files that share a process share fast-check. */
const isInstalled = fc.readConfigureGlobal().seed !== undefined;
if (!isInstalled) fc.installGlobalPlugin(reportReplay);

fc.configureGlobal({ seed: Number(seed), ...(path === undefined ? {} : { path, endOnFailure: true }) });
