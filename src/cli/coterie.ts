#!/usr/bin/env node
/** The executable of the command line. */
import { fileURLToPath } from "node:url";
import { runCommand } from "./command-line.ts";

/** The longest time that open timers and sockets can keep the process running after the command. */
const END_WITHIN_MS = 500;

/** False if the sources run directly, as with `npx tsx`. */
const isBuilt = import.meta.url.endsWith(".js");

const { stdout, stderr } = process;
for (const stream of [stdout, stderr]) stream.on("error", () => {}); // The reader closed the pipe.
const words = process.argv.slice(2);
if (isBuilt && words[0]?.startsWith("-") === false) {
  const { newerSource } = await import("./stale-build.ts");
  const newer = newerSource(fileURLToPath(new URL("../..", import.meta.url)), "dist/cli/coterie.js", ["src"]);
  if (newer !== null) stderr.write(`coterie: this build is older than ${newer}: run \`npm run build\`\n`);
}
process.exitCode = await runCommand({ words, stdout, stderr, usesThreads: isBuilt });
setTimeout(() => process.exit(), END_WITHIN_MS).unref();
