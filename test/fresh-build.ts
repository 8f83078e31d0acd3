/**
 * Fails before tests that run the build if the build is older than its sources. An old build behaves differently from
 * the sources, so its failures would be confusing.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newerSource, timeOf } from "../src/cli/stale-build.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

export default function requireFreshBuild(): void {
  const stale = staleBuild(ROOT);
  if (stale !== null) throw new Error(stale);
}

/** Builds, each with a file that it always writes. */
const builds = [
  { built: "dist/cli/coterie.js", sources: ["src"] },
  { built: "build/bench/check.js", sources: ["src", "bench"] },
  { built: "dist/studio/index.html", sources: ["studio/src"] },
];

/** Returns the instruction to build, or null if all builds are newer than their sources. */
export function staleBuild(root: string): string | null {
  for (const { built, sources } of builds) {
    if (timeOf(join(root, built)) === null) return `expected ${built}, which is not there: run \`npm run build\``;
    const newer = newerSource(root, built, sources);
    if (newer !== null)
      return `expected ${built} to be younger than its sources, but ${newer} has changed since: run \`npm run build\``;
  }
  return null;
}
