import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";

/** The terms of `--tags-filter`, joined by `&&`: a tag, or `!` and an excluded tag. */
let tagsFilter: readonly string[] = [];

/** Ends a run with one plain line, `N passed, N failed, N skipped`, for machines that read the last line of a log. */
export const countsReporter: Reporter = {
  onInit(vitest: Vitest) {
    tagsFilter = (vitest.config.tagsFilter ?? []).flatMap((words) => words.split(" && "));
  },
  onTestRunEnd(modules, unhandledErrors) {
    const { passed, failed, skipped } = countTests(modules);
    const broken = failed + brokenModules(modules) + unhandledErrors.length;
    // Print this last, because the summary for people goes to the same stream.
    process.once("exit", (code) => {
      const failures = broken === 0 && code !== 0 ? 1 : broken; // The failure was outside any test.
      process.stdout.write(`${passed} passed, ${failures} failed, ${skipped} skipped\n`);
    });
  },
};

function countTests(modules: readonly TestModule[]): { passed: number; failed: number; skipped: number } {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      if (isLeftOut(test)) continue; // The test belongs to a different run.
      const { state } = test.result();
      counts[state === "pending" ? "failed" : state] += 1; // A pending test has no result at the end.
    }
  }
  return counts;
}

const isLeftOut = ({ tags }: TestCase): boolean =>
  tagsFilter.some((word) => (word.startsWith("!") ? tags.includes(word.slice(1)) : !tags.includes(word)));

/** Counts files that failed outside any test: they did not load, or a hook of the file or of a suite threw an error. */
function brokenModules(modules: readonly TestModule[]): number {
  return modules.filter(
    (module) =>
      module.state() === "failed" && [...module.children.allTests()].every((test) => test.result().state !== "failed"),
  ).length;
}
