/** One run of the command line: its words, and where its output goes. */

/** Where a command writes; `process.stdout` is one. */
export interface Output {
  write(content: string | Uint8Array): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface Invocation {
  /** Without the names of the program and the script. */
  readonly words: readonly string[];
  readonly stdout: Output;
  readonly stderr: Output;
  /** Whether long work is done on threads of its own, so that this one can show its progress and hear Ctrl-C. */
  readonly usesThreads: boolean;
}
