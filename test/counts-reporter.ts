import type { Reporter, TestModule } from "vitest/node";

/** Ends a run with one plain line, `N passed, N failed, N skipped`, for machines that read the last line of a log. */
export const countsReporter: Reporter = {
  onTestRunEnd(modules, unhandledErrors) {
    const { passed, failed, skipped } = countTests(modules);
    const broken = failed + brokenModules(modules) + unhandledErrors.length;
    // Printed last of all: the summary for people is on its way to the same stream.
    process.once("exit", () => process.stdout.write(`${passed} passed, ${broken} failed, ${skipped} skipped\n`));
  },
};

function countTests(modules: readonly TestModule[]): { passed: number; failed: number; skipped: number } {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      counts[state === "pending" ? "failed" : state] += 1; // Pending at the end: it never came to a result.
    }
  }
  return counts;
}

/** Files that failed outside any test: they did not load, or a hook of the file or of a suite threw. */
function brokenModules(modules: readonly TestModule[]): number {
  return modules.filter(
    (module) =>
      module.state() === "failed" && [...module.children.allTests()].every((test) => test.result().state !== "failed"),
  ).length;
}
