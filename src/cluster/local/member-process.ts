/** An operating-system process that runs one member: `coterie node … --supervised`. */
import { type ChildProcess, spawn } from "node:child_process";
import { execPath } from "node:process";
import type { NodeId } from "../../core/protocol.ts";
import { eachLine } from "./lines.ts";

const MAX_LOG_LINE = 4_000;

/** How to start a member's process. */
export interface Launch {
  /** The command-line interface's script. */
  readonly entry: string;
  readonly configFile: string;
  /** Returns additional command-line arguments for a member. */
  readonly wordsFor?: (node: NodeId) => readonly string[];
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** A description such as "killed by SIGKILL". */
  readonly words: string;
}

export interface ProcessEvents {
  /** Called when the member is running and answers. */
  readonly onListening: () => void;
  readonly onLog: (line: string) => void;
  /** Called exactly once. */
  readonly onExit: (exit: Exit) => void;
}

/** A process that runs a member. */
export interface MemberProcess {
  /** The process id. Null if the system refused to start the process. */
  readonly pid: number | null;
  signal(name: NodeJS.Signals): void;
}

/** Starts a process for a member. */
export function startProcess(
  { entry, configFile, wordsFor }: Launch,
  node: NodeId,
  events: ProcessEvents,
): MemberProcess {
  const args = [entry, "node", "--config", configFile, "--id", String(node), "--fault-injector", "--supervised"];
  args.push(...(wordsFor?.(node) ?? []));
  // The process gets its own session, so that Ctrl-C in the terminal reaches only the supervisor, which stops the
  // members in an orderly way. A member exits when its standard input ends, which happens when the supervisor ends for
  // any reason.
  const child: ChildProcess = spawn(execPath, args, {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    windowsHide: true,
  });
  child.on("error", (error) => {
    if (child.pid === undefined) events.onExit({ code: null, signal: null, words: `not started: ${error.message}` });
  });
  // If no file descriptors are free (EMFILE, ENFILE), the process has no pipes, and an `error` event follows.
  if (!child.stdin || !child.stdout || !child.stderr) return { pid: null, signal: () => {} };
  child.stdin.on("error", () => {}); // Nothing is written to this pipe.
  eachLine(child.stdout, MAX_LOG_LINE, (line) => {
    if (line.startsWith('{"event":"listening"')) events.onListening();
  });
  eachLine(child.stderr, MAX_LOG_LINE, events.onLog);
  child.on("exit", (code, signal) => events.onExit({ code, signal, words: exitWords(code, signal) }));
  return { pid: child.pid ?? null, signal: (name) => void child.kill(name) };
}

function exitWords(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal !== null) return `killed by ${signal}`;
  return code === 0 ? "stopped" : `ended with exit code ${code}`;
}
