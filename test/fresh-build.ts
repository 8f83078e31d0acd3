/**
 * Before tests that run what was built: a build that is older than its sources is said to be one. What it runs is not what
 * the sources say, and its failures would be riddles.
 */
import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

export default function requireFreshBuild(): void {
  const stale = staleBuild(ROOT);
  if (stale !== null) throw new Error(stale);
}

/** Each with a file that every build writes. */
const builds = [
  { built: "dist/cli/coterie.js", sources: ["src"] },
  { built: "build/bench/check.js", sources: ["src", "bench"] },
  { built: "dist/studio/index.html", sources: ["studio/src"] },
];

/** What is to be done, or null if all that was built is younger than its sources. */
export function staleBuild(root: string): string | null {
  for (const { built, sources } of builds) {
    const at = timeOf(join(root, built));
    if (at === null) return `expected ${built}, which is not there: run \`npm run build\``;
    const newer = sources.flatMap((folder) => filesIn(join(root, folder))).find((file) => (timeOf(file) ?? 0) > at);
    if (newer !== undefined)
      return `expected ${built} to be younger than its sources, but ${relative(root, newer)} has changed since: run \`npm run build\``;
  }
  return null;
}

const isSource = (file: string): boolean => /\.(ts|svelte|css|html)$/.test(file) && !/\.(test|test-d)\.ts$/.test(file);

function filesIn(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter(isSource).map((file) => join(folder, file));
}

function timeOf(file: string): number | null {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null;
}
