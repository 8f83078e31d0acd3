#!/usr/bin/env node
/** The process of the command line. */
import { runCommand } from "./command-line.ts";

/** What still keeps the process from ending has this long. */
const END_WITHIN_MS = 500;

const { stdout, stderr } = process;
for (const stream of [stdout, stderr]) stream.on("error", () => {}); // Nobody reads it any more.
process.exitCode = await runCommand({ words: process.argv.slice(2), stdout, stderr, usesThreads: true });
setTimeout(() => process.exit(), END_WITHIN_MS).unref();
