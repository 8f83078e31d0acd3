/**
 * Random tests say with which command their failure is replayed, and `FC_SEED` and `FC_PATH` replay it: the seed is that of
 * every property of the tests that run, the path leads to the one counterexample.
 */
import { relative } from "node:path";
import fc from "fast-check";
import { expect } from "vitest";

const { FC_SEED: seed, FC_PATH: path } = process.env;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

fc.installGlobalPlugin(() => ({
  onAllRunsComplete(details) {
    if (!details.failed) return;
    const { testPath = "FILE", currentTestName = "NAME" } = expect.getState();
    const where = details.counterexamplePath === null ? "" : ` FC_PATH=${details.counterexamplePath}`;
    const pattern = currentTestName.replaceAll(" > ", " ").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const command = `FC_SEED=${details.seed}${where} npx vitest run ${relative(process.cwd(), testPath)} -t ${quoted(pattern)}`;
    const error = new Error(`${fc.defaultReportMessage(details)}\n\nReplay: ${command}`);
    if (details.errorInstance !== null) error.cause = details.errorInstance;
    throw error;
  },
}));

fc.configureGlobal({
  ...(seed === undefined ? {} : { seed: Number(seed) }),
  ...(path === undefined ? {} : { path, endOnFailure: true }),
});
