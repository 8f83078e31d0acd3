/** The command line as a function: a command is chosen, loaded and run, and what comes of it is an exit code. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { UsageError } from "../core/errors.ts";
import { errorLine, fitted } from "../experiment/paragraph.ts";
import { commands } from "./commands.ts";
import { ExitWith } from "./exit-with.ts";
import type { Invocation, Output } from "./invocation.ts";

const EXAMPLE = `
Example:
  $ coterie up             five processes, a leader, and a page to watch them
  $ coterie up --help      what it does, in full`;

/** Options that have another name now. */
const renamed: Readonly<Record<string, string>> = {
  "--story": "--log",
  "--notices": "--failure-detector",
  "--without-lost": "--delivered-only",
  "--mid-step": "--within-step",
};

/** Of help that no terminal shows. */
const COLUMNS = 80;

/** Runs one command. Returns the exit code: 0, 1 where what was asked for does not hold, 2 for wrong usage, or its own. */
export async function runCommand(invocation: Invocation): Promise<number> {
  const { words, stderr } = invocation;
  const root = program(invocation);
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
    stderr.write(`coterie: ${errorLine(messageOf(error))}\n`);
    if (error instanceof ExitWith) return error.exitCode;
    return error instanceof UsageError || error instanceof CommanderError ? 2 : 1;
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isUnknown = error instanceof CommanderError && error.code === "commander.unknownOption";
  const [word = ""] = isUnknown ? (/--[a-z-]+/.exec(error.message) ?? []) : [];
  return Object.hasOwn(renamed, word) ? `unknown option '${word}': it is called ${renamed[word]} now` : error.message;
}

function program(invocation: Invocation): Command {
  const root = new Command("coterie")
    .description("Distributed coordination: leader election, mutual exclusion, ordered multicast, consensus.")
    .version(version())
    .helpCommand(false)
    .enablePositionalOptions()
    .configureHelp({ subcommandTerm: (command) => `${command.name()} ${commands[command.name()]?.usage ?? ""}`.trim() })
    .addHelpText("after", EXAMPLE)
    .hook("preSubcommand", async (_root, command) => {
      (await commands[command.name()]?.load())?.declare(command, invocation);
      for (const inner of command.commands) ending(inner, invocation.stdout);
    });
  for (const [name, { summary }] of Object.entries(commands))
    root.addCommand(ending(new Command(name).summary(summary), invocation.stdout));
  return ending(root, invocation.stdout);
}

/** Help goes to `stdout`; every other end of commander is an error, which `runCommand` writes. */
function ending(command: Command, stdout: Output): Command {
  return command
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: (text) => stdout.write(fitted(text, widthOf(stdout))),
      getOutHelpWidth: () => widthOf(stdout),
      outputError: () => {},
    });
}

const widthOf = (stdout: Output): number => (stdout.isTTY === true ? (stdout.columns ?? COLUMNS) : COLUMNS);

function version(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}
