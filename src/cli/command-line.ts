/** The command line as a function: a command is chosen, loaded and run, and what comes of it is an exit code. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { UsageError } from "../core/errors.ts";
import { errorLine, fitted } from "../experiment/paragraph.ts";
import { ExitWith, type Invocation, type Output } from "./output.ts";

interface Listed {
  /** What follows the name in the list of commands. */
  readonly usage: string;
  readonly summary: string;
  /** Loads the module of the command. Adds options, arguments and the action. */
  readonly load: () => Promise<(command: Command, invocation: Invocation) => void>;
}

/** By name. The module of a command is loaded when the command is chosen. */
export const commands: Readonly<Record<string, Listed>> = {
  up: {
    usage: "[options]",
    summary: "start a local cluster of real processes, and the studio",
    load: async () => (await import("./cluster/up.ts")).declare,
  },
  node: {
    usage: "[options]",
    summary: "run one member of a cluster by itself",
    load: async () => (await import("./cluster/node.ts")).declare,
  },
  studio: {
    usage: "[options]",
    summary: "the laboratory, or the studio over members that run elsewhere",
    load: async () => (await import("./cluster/studio.ts")).declare,
  },
  status: {
    usage: "[options]",
    summary: "who is alive in a cluster, and who leads",
    load: async () => (await import("./cluster/status.ts")).declare,
  },
  doctor: {
    usage: "[options]",
    summary: "look for what may be wrong with a cluster",
    load: async () => (await import("./cluster/doctor.ts")).declare,
  },
  member: {
    usage: "",
    summary: "list, add, remove, move members, or mend one that has lost its folder",
    load: async () => (await import("./cluster/member.ts")).declare,
  },
  transfer: {
    usage: "[options] <id>",
    summary: "have a member lead the replicated log",
    load: async () => (await import("./cluster/member.ts")).declareTransfer,
  },
  snapshot: {
    usage: "",
    summary: "save what members share, or found a new cluster from it",
    load: async () => (await import("./cluster/snapshot.ts")).declare,
  },
  cert: {
    usage: "[options] [ids...]",
    summary: "make certificates for the members and clients of a cluster",
    load: async () => (await import("./cluster/cert.ts")).declare,
  },
  get: {
    usage: "[options] <map> [key]",
    summary: "read a key of a map that the cluster shares, or many",
    load: async () => (await import("./client/maps.ts")).declareGet,
  },
  put: {
    usage: "[options] <map> <key> [value]",
    summary: "put a value under a key of a map",
    load: async () => (await import("./client/maps.ts")).declarePut,
  },
  del: {
    usage: "[options] <map> <key>",
    summary: "delete a key of a map",
    load: async () => (await import("./client/maps.ts")).declareDelete,
  },
  watch: {
    usage: "[options] <map> [key]",
    summary: "print every change of a map as it happens",
    load: async () => (await import("./client/maps.ts")).declareWatch,
  },
  txn: {
    usage: "[options] <file>",
    summary: "read and write several keys at one moment",
    load: async () => (await import("./client/maps.ts")).declareTxn,
  },
  counter: {
    usage: "[options] <name>",
    summary: "print a counter, add to it, or set it",
    load: async () => (await import("./client/maps.ts")).declareCounter,
  },
  lock: {
    usage: "[options] <name> <command...>",
    summary: "run a command while holding a lock of the cluster",
    load: async () => (await import("./client/lock-and-elect.ts")).declareLock,
  },
  elect: {
    usage: "[options] <name> <command...>",
    summary: "run a command while this member leads",
    load: async () => (await import("./client/lock-and-elect.ts")).declareElect,
  },
  check: {
    usage: "[options] <protocol>",
    summary: "explore every behaviour of a protocol within bounds",
    load: async () => (await import("./experiments/check.ts")).declare,
  },
  "check-history": {
    usage: "[options] <file>",
    summary: "check a recorded history for linearizability",
    load: async () => (await import("./experiments/check-history.ts")).declare,
  },
  "verify-proof": {
    usage: "[options] <file>",
    summary: "verify a proof that a player of a lockstep game has cheated",
    load: async () => (await import("./verify-proof.ts")).declare,
  },
  sim: {
    usage: "[options] [protocol|file]",
    summary: "run a protocol or a scenario in virtual time",
    load: async () => (await import("./experiments/sim.ts")).declare,
  },
  campaign: {
    usage: "[options] <file>",
    summary: "make many runs of experiments, on many threads",
    load: async () => (await import("./experiments/campaign.ts")).declare,
  },
  trace: {
    usage: "[options] <file>",
    summary: "show a recorded run, draw it, or hand it to other tools",
    load: async () => (await import("./experiments/trace.ts")).declare,
  },
  protocols: {
    usage: "[options] [name]",
    summary: "the algorithms, what they guarantee and what they cost",
    load: async () => (await import("./protocols.ts")).declare,
  },
  new: {
    usage: "[options] <family> <name>",
    summary: "write the files of a new algorithm, to fill in",
    load: async () => (await import("./new-algorithm.ts")).declare,
  },
  "voting-sets": {
    usage: "[options] [nodes]",
    summary: "voting sets for Maekawa's mutual exclusion, made or checked",
    load: async () => (await import("./voting-sets.ts")).declare,
  },
  bench: {
    usage: "[name] [options...]",
    summary: "measure Coterie beside its peers",
    load: async () => (await import("./bench.ts")).declare,
  },
};

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
      (await commands[command.name()]?.load())?.(command, invocation);
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
