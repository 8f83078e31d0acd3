/**
 * Gives random tests a fixed seed, so that a change fails because of its effects and not by chance: two runs over the
 * same code try the same inputs. Fresh seeds are for `npm run test:random`, which sets `FC_SEED` for each of its
 * rounds.
 *
 * A failure prints the command that replays it with `FC_SEED` and `FC_PATH`. The seed applies to all properties of the
 * selected tests, and the path leads to one counterexample. `test/random-soak` records the names of random tests in the
 * file named by `COTERIE_RANDOM_TESTS`.
 */
import { relative } from "node:path";
import fc from "fast-check";
import { expect } from "vitest";
import { noteRandomTest, patternOf } from "./random-seeds.ts";

/**
 * An arbitrary number. A different seed gives a different sample. Do not change the seed because a test fails with a
 * fresh one.
 */
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

/** Files that share a process also share fast-check. */
const isInstalled = fc.readConfigureGlobal().seed !== undefined;
if (!isInstalled) fc.installGlobalPlugin(reportReplay);

fc.configureGlobal({ seed: Number(seed), ...(path === undefined ? {} : { path, endOnFailure: true }) });
