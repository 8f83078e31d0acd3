#!/usr/bin/env node
/** The executable for the command line. */
import { fileURLToPath } from "node:url";
import { runCommand } from "./command-line.ts";

/** How long open timers and sockets may keep the process running after the command has ended. */
const END_WITHIN_MS = 500;

/** Whether this is the built program. False if the sources are run directly, as with `npx tsx`. */
const isBuilt = import.meta.url.endsWith(".js");

const { stdout, stderr } = process;
for (const stream of [stdout, stderr]) stream.on("error", () => {}); // The reader has closed the pipe.
const words = process.argv.slice(2);
if (isBuilt && words[0]?.startsWith("-") === false) {
  const { newerSource } = await import("./stale-build.ts");
  const newer = newerSource(fileURLToPath(new URL("../..", import.meta.url)), "dist/cli/coterie.js", ["src"]);
  if (newer !== null) stderr.write(`coterie: this build is older than ${newer}: run \`npm run build\`\n`);
}
process.exitCode = await runCommand({ words, stdout, stderr, usesThreads: isBuilt });
setTimeout(() => process.exit(), END_WITHIN_MS).unref();
