#!/usr/bin/env node
/** The process of the command line. */
import { fileURLToPath } from "node:url";
import { runCommand } from "./command-line.ts";

/** What still keeps the process from ending has this long. */
const END_WITHIN_MS = 500;

/** Not the sources themselves, as `npx tsx` runs them. */
const isBuilt = import.meta.url.endsWith(".js");

const { stdout, stderr } = process;
for (const stream of [stdout, stderr]) stream.on("error", () => {}); // Nobody reads it any more.
const words = process.argv.slice(2);
if (isBuilt && words[0]?.startsWith("-") === false) {
  const { newerSource } = await import("./stale-build.ts");
  const newer = newerSource(fileURLToPath(new URL("../..", import.meta.url)), "dist/cli/coterie.js", ["src"]);
  if (newer !== null) stderr.write(`coterie: this build is older than ${newer}: run \`npm run build\`\n`);
}
process.exitCode = await runCommand({ words, stdout, stderr, usesThreads: isBuilt });
setTimeout(() => process.exit(), END_WITHIN_MS).unref();
