/** The command line as a function. It loads and runs the chosen command, and returns the exit code. */
import { Command, CommanderError } from "commander";
import { UsageError } from "../core/errors.ts";
import { errorLine, fitted } from "../experiment/paragraph.ts";
import { packageVersion } from "../runtime/package-files.ts";
import { ExitWith, type Invocation, type Output, printText, styled } from "./output.ts";

interface Listed {
  readonly group: keyof typeof groups;
  readonly summary: string;
  /** Loads the command's module, and returns a function that adds the command's options, arguments and action. */
  readonly load: () => Promise<(command: Command, invocation: Invocation) => void>;
}

/** The headings in the list of commands. */
export const groups = {
  local: "Local cluster:",
  state: "Shared state:",
  operate: "Operate:",
  learn: "Learn and verify:",
} as const;

/** All commands by name. A command's module is loaded only if the command is chosen. */
export const commands: Readonly<Record<string, Listed>> = {
  up: {
    group: "local",
    summary: "start a local cluster of real processes, with the studio",
    load: async () => (await import("./cluster/up.ts")).declare,
  },
  status: {
    group: "local",
    summary: "show a cluster's members and its leader",
    load: async () => (await import("./cluster/status.ts")).declare,
  },
  studio: {
    group: "local",
    summary: "open the laboratory, or a studio for running members",
    load: async () => (await import("./cluster/studio.ts")).declare,
  },
  get: {
    group: "state",
    summary: "read a map key, or a range of keys",
    load: async () => (await import("./client/maps.ts")).declareGet,
  },
  put: {
    group: "state",
    summary: "write a map key",
    load: async () => (await import("./client/maps.ts")).declarePut,
  },
  del: {
    group: "state",
    summary: "delete a map key",
    load: async () => (await import("./client/maps.ts")).declareDelete,
  },
  watch: {
    group: "state",
    summary: "print every change to a map as it happens",
    load: async () => (await import("./client/maps.ts")).declareWatch,
  },
  txn: {
    group: "state",
    summary: "read and write several keys atomically",
    load: async () => (await import("./client/maps.ts")).declareTxn,
  },
  counter: {
    group: "state",
    summary: "print a counter, add to it, or set it",
    load: async () => (await import("./client/maps.ts")).declareCounter,
  },
  lock: {
    group: "state",
    summary: "run a command while holding a lock",
    load: async () => (await import("./client/lock-and-elect.ts")).declareLock,
  },
  elect: {
    group: "state",
    summary: "run a command while leading an election",
    load: async () => (await import("./client/lock-and-elect.ts")).declareElect,
  },
  node: {
    group: "operate",
    summary: "run one member of a cluster",
    load: async () => (await import("./cluster/node.ts")).declare,
  },
  doctor: {
    group: "operate",
    summary: "check a cluster for problems",
    load: async () => (await import("./cluster/doctor.ts")).declare,
  },
  member: {
    group: "operate",
    summary: "list, add, remove, move and repair members",
    load: async () => (await import("./cluster/member.ts")).declare,
  },
  transfer: {
    group: "operate",
    summary: "make a member the leader of the replicated log",
    load: async () => (await import("./cluster/member.ts")).declareTransfer,
  },
  snapshot: {
    group: "operate",
    summary: "save the shared state, or start a cluster from it",
    load: async () => (await import("./cluster/snapshot.ts")).declare,
  },
  cert: {
    group: "operate",
    summary: "make TLS certificates for members and clients",
    load: async () => (await import("./cluster/cert.ts")).declare,
  },
  protocols: {
    group: "learn",
    summary: "list the algorithms with their guarantees and costs",
    load: async () => (await import("./protocols.ts")).declare,
  },
  sim: {
    group: "learn",
    summary: "run a protocol or a scenario in virtual time",
    load: async () => (await import("./experiments/sim.ts")).declare,
  },
  check: {
    group: "learn",
    summary: "explore every run of a protocol within bounds",
    load: async () => (await import("./experiments/check.ts")).declare,
  },
  trace: {
    group: "learn",
    summary: "show, draw, check or export a recorded run",
    load: async () => (await import("./experiments/trace.ts")).declare,
  },
  campaign: {
    group: "learn",
    summary: "run experiments with many seeds on many threads",
    load: async () => (await import("./experiments/campaign.ts")).declare,
  },
  "check-history": {
    group: "learn",
    summary: "check a recorded history for linearizability",
    load: async () => (await import("./experiments/check-history.ts")).declare,
  },
  "verify-proof": {
    group: "learn",
    summary: "verify a proof that a lockstep player cheated",
    load: async () => (await import("./verify-proof.ts")).declare,
  },
  "voting-sets": {
    group: "learn",
    summary: "make or check voting sets for Maekawa's algorithm",
    load: async () => (await import("./voting-sets.ts")).declare,
  },
  new: {
    group: "learn",
    summary: "generate the files for a new algorithm",
    load: async () => (await import("./new-algorithm.ts")).declare,
  },
  bench: {
    group: "learn",
    summary: "compare Coterie with other systems",
    load: async () => (await import("./bench.ts")).declare,
  },
};

const EXAMPLE = `
Examples:
  $ coterie up             five processes, a leader, and a page to watch them
  $ coterie sim --help     the options of a command`;

/** The width of help text if the output is not a terminal. */
const COLUMNS = 80;

/**
 * Runs a command. Returns its exit code: 0, 1 after a failure or a negative verdict, 2 for incorrect usage, or a code
 * specific to the command.
 */
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

/** Treats `help NAME` as `NAME --help`. An unknown name fails in the same way as without `help`. */
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
    return `expected one of ${names}: see coterie ${words[0]} --help`;
  }
  const isUnknown = error instanceof CommanderError && error.code === "commander.unknownOption";
  const [name = ""] = words;
  if (isUnknown && RUN_COMMANDS.includes(name) && !words.includes("--"))
    return `${error.message}: put -- before the command, as in coterie ${name} NAME -- COMMAND`;
  return error.message;
}

/** Commands that run another command. Their own options are followed by `--`, then that command. */
const RUN_COMMANDS: readonly string[] = ["lock", "elect"];

/** Returns the program with all commands. A command's options are added when it is chosen. */
function program(invocation: Invocation): Command {
  const root = new Command("coterie")
    .description("Distributed coordination: leader election, locks, ordered messages, consensus.")
    .version(packageVersion())
    .helpCommand(false)
    .enablePositionalOptions()
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addHelpText("after", EXAMPLE)
    .hook("preSubcommand", async (_root, command) => {
      (await commands[command.name()]?.load())?.(command, invocation);
      for (const inner of command.commands) ending(inner, invocation.stdout);
    });
  for (const [name, { group, summary }] of Object.entries(commands))
    root.addCommand(ending(new Command(name).summary(summary).helpGroup(groups[group]), invocation.stdout));
  return ending(root, invocation.stdout);
}

/** Makes Commander write help to `stdout`. In all other cases Commander throws, and `runCommand` writes the error. */
function ending(command: Command, stdout: Output): Command {
  return command
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: (text) => printText(withBoldHeadings(fitted(text, widthOf(stdout))), stdout),
      getOutHelpWidth: () => widthOf(stdout),
      writeErr: () => {}, // This suppresses the help text that Commander would print with an error.
      outputError: () => {},
    });
}

const withBoldHeadings = (help: string): string =>
  help.replaceAll(/^[A-Z][\w ]*:/gm, (heading) => styled("bold", heading));

const widthOf = (stdout: Output): number => (stdout.isTTY === true ? (stdout.columns ?? COLUMNS) : COLUMNS);
