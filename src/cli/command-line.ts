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
    await root.parseAsync(asked(words), { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0; // --help and --version
    if (error instanceof ExitWith && error.message === "") return error.exitCode;
    stderr.write(`coterie: ${errorLine(messageOf(error, root, words))}\n`);
    if (error instanceof ExitWith) return error.exitCode;
    return error instanceof UsageError || error instanceof CommanderError ? 2 : 1;
  }
}

/** `help NAME` is what `NAME --help` is, and an unknown name what it is without help. */
function asked([first, ...rest]: readonly string[]): string[] {
  if (first !== "help") return first === undefined ? rest : [first, ...rest];
  const [name] = rest;
  return name === undefined || Object.hasOwn(commands, name) ? [...rest, "--help"] : rest;
}

function messageOf(error: unknown, root: Command, words: readonly string[]): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof CommanderError && error.code === "commander.help") {
    const group = root.commands.find((command) => command.name() === words[0]);
    const names = group?.commands.map((command) => command.name()).join(", ");
    return `expected one of ${names}, got nothing: see coterie ${words[0]} --help`;
  }
  return error.message;
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
      writeErr: () => {}, // Help that nobody asked for.
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
