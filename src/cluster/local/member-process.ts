/** An operating-system process that runs one member: `coterie node … --supervised`. */
import { type ChildProcess, spawn } from "node:child_process";
import { execPath } from "node:process";
import type { NodeId } from "../../core/protocol.ts";
import { eachLine } from "./lines.ts";

const MAX_LOG_LINE = 4_000;

/** How to start a member's process. */
export interface Launch {
  /** The script of the command line. */
  readonly entry: string;
  readonly configFile: string;
  /** Command-line arguments for one member only. */
  readonly wordsFor?: (node: NodeId) => readonly string[];
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** A text such as "killed by SIGKILL". */
  readonly words: string;
}

export interface ProcessEvents {
  /** The member runs and answers. */
  readonly onListening: () => void;
  readonly onLog: (line: string) => void;
  /** Called exactly once. */
  readonly onExit: (exit: Exit) => void;
}

export interface MemberProcess {
  /** Null if the system refused to start it. */
  readonly pid: number | null;
  signal(name: NodeJS.Signals): void;
}

export function startProcess(
  { entry, configFile, wordsFor }: Launch,
  node: NodeId,
  events: ProcessEvents,
): MemberProcess {
  const args = [entry, "node", "--config", configFile, "--id", String(node), "--fault-injector", "--supervised"];
  args.push(...(wordsFor?.(node) ?? []));
  // A session of its own: Ctrl-C in the terminal reaches only the supervisor, which stops the members in order. Its
  // standard input is the lifeline: it ends when the supervisor is gone, for any reason.
  const child: ChildProcess = spawn(execPath, args, {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    windowsHide: true,
  });
  child.on("error", (error) => {
    if (child.pid === undefined) events.onExit({ code: null, signal: null, words: `not started: ${error.message}` });
  });
  // Without free file descriptors (EMFILE, ENFILE) it has no pipes, and `error` follows.
  if (!child.stdin || !child.stdout || !child.stderr) return { pid: null, signal: () => {} };
  child.stdin.on("error", () => {}); // Nothing is written to it.
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
