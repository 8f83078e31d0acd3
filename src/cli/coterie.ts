#!/usr/bin/env node
/** The command line: one file per command, and here what they share, which is how they end. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { UsageError } from "../core/errors.ts";
import { benchCommand } from "./bench.ts";
import { checkCommand } from "./check.ts";
import { checkHistoryCommand } from "./check-history.ts";
import { electCommand } from "./elect.ts";
import { ExitWith } from "./exit-with.ts";
import { lockCommand } from "./lock.ts";
import { memberCommand } from "./member.ts";
import { nodeCommand } from "./node.ts";
import { errorLine } from "./paragraph.ts";
import { protocolsCommand } from "./protocols.ts";
import { simCommand } from "./sim.ts";
import { statusCommand } from "./status.ts";
import { traceCommand } from "./trace.ts";
import { upCommand } from "./up.ts";
import { votingSetsCommand } from "./voting-sets.ts";

/** What still keeps the process from ending has this long. */
const END_WITHIN_MS = 500;

const EXAMPLE = `
Example:
  $ coterie up             five processes, a leader, and a page to watch them
  $ coterie up --help      what it does, in full`;

function program(): Command {
  const root = new Command("coterie")
    .description("Distributed coordination: leader election, mutual exclusion, ordered multicast, consensus.")
    .version(version())
    .helpCommand(false)
    .enablePositionalOptions()
    .addCommand(upCommand())
    .addCommand(nodeCommand())
    .addCommand(statusCommand())
    .addCommand(memberCommand())
    .addCommand(lockCommand())
    .addCommand(electCommand())
    .addCommand(checkCommand())
    .addCommand(checkHistoryCommand())
    .addCommand(simCommand())
    .addCommand(traceCommand())
    .addCommand(protocolsCommand())
    .addCommand(votingSetsCommand())
    .addCommand(benchCommand())
    .addHelpText("after", EXAMPLE);
  for (const command of [root, ...root.commands]) {
    command
      .exitOverride()
      .showSuggestionAfterError(true)
      .configureOutput({ outputError: () => {} });
  }
  return root;
}

function version(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}

/** Runs one command. Returns the exit code: 0, 1 where what was asked for does not hold, 2 for wrong usage, or its own. */
async function run(words: readonly string[]): Promise<number> {
  const root = program();
  if (words.length === 0) {
    root.outputHelp();
    return 0;
  }
  try {
    const [first, ...rest] = words;
    await root.parseAsync(first === "help" ? [...rest, "--help"] : words, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0; // --help and --version
    if (error instanceof ExitWith && error.message === "") return error.exitCode;
    process.stderr.write(`coterie: ${errorLine(error instanceof Error ? error.message : String(error))}\n`);
    if (error instanceof ExitWith) return error.exitCode;
    return error instanceof UsageError || error instanceof CommanderError ? 2 : 1;
  }
}

for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {}); // Nobody reads it any more.
process.exitCode = await run(process.argv.slice(2));
setTimeout(() => process.exit(), END_WITHIN_MS).unref();
