/** The side of `coterie`: starts a supervisor, gives it one command to run, and receives the result. */
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { eachLine } from "../../cluster/local/lines.ts";
import type { Tenure } from "../../cluster/services/api.ts";
import { EnvironmentError } from "../../core/errors.ts";
import { codeAfter, ExitWith } from "../output.ts";
import {
  type Ended,
  type FromSupervisor,
  LONGEST_TIMER_MS,
  MAX_LINE_LENGTH,
  monotonicMs,
  type Order,
  PIPE,
  type ToSupervisor,
} from "./supervisor-lines.ts";

/** If the supervisor is paused or stuck, this side kills the command, later than the supervisor would. */
const KILL_EARLY_MS = 10;
/** After that, how long the supervisor has to report the end of the command. */
const LAST_WORD_MS = 1_000;

const SCRIPT = fileURLToPath(new URL("./supervisor-process.js", import.meta.url));

/** Runs one command. Start it early, so that the command can start as soon as there is a grant. */
export class Supervisor {
  /** The grant was not confirmed in time, and the command was asked to end, or killed. */
  isOverdue = false;
  /** The command's process group, from when this side knows it until the command has ended. */
  group: number | null = null;
  readonly #words = new EventEmitter<{ ready: []; ended: [Ended]; error: [Error] }>();
  readonly #process: ChildProcess;
  readonly #pipe: Duplex | undefined;
  /** Resolves when the supervisor runs and waits. Rejects with an EnvironmentError if it cannot be started. */
  readonly ready: Promise<unknown>;
  readonly #ended: Promise<[Ended]>;
  readonly #gone: Promise<void>;
  #until: number | null = null;
  #isRunning = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(script = SCRIPT) {
    this.ready = once(this.#words, "ready");
    this.#ended = once(this.#words, "ended") as Promise<[Ended]>;
    for (const awaited of [this.ready, this.#ended]) awaited.catch(() => {}); // It may fail before the first await.
    const startedAt = monotonicMs();
    this.#process = spawn(process.execPath, [script], {
      stdio: ["inherit", "inherit", "inherit", "pipe"],
      detached: true, // Ctrl-C in the terminal reaches only `coterie`, which forwards it.
    });
    this.#gone = new Promise((resolve) => {
      this.#process.on("error", (error) => {
        this.#fail(new EnvironmentError("no-supervisor", `cannot start a process: ${error.message}`, { cause: error }));
        if (this.#process.pid === undefined) resolve();
      });
      // `close` follows after all messages have been read.
      this.#process.on("close", (code, signal) => {
        this.#killGroup();
        const how = signal === null ? `ended with code ${code}` : `was ended by ${signal}`;
        this.#fail(new EnvironmentError("supervisor-ended", `the process that watched over the command ${how}`));
        resolve();
      });
    });
    this.#pipe = this.#process.stdio?.[PIPE] as Duplex | undefined; // Undefined if there are too many open files: `error` follows.
    this.#pipe?.on("error", () => {}); // `close` follows.
    if (this.#pipe !== undefined)
      eachLine(this.#pipe, MAX_LINE_LENGTH, (line) => this.#take(JSON.parse(line) as FromSupervisor, startedAt));
  }

  /** Runs the command. Call it once. @throws EnvironmentError if the supervisor cannot be started, or is killed */
  async run(order: Omit<Order, "until">): Promise<Ended> {
    await this.ready;
    this.#isRunning = true;
    this.#tell({ type: "run", ...order, until: this.#until });
    this.#guard();
    try {
      return (await this.#ended)[0];
    } finally {
      this.#isRunning = false;
      clearTimeout(this.#timer);
    }
  }

  /** The grant is certain until that moment of `monotonicMs`. Without this call it has no end. */
  certain(until: number): void {
    this.#until = until;
    if (!this.#isRunning) return;
    this.#tell({ type: "certain", until });
    this.#guard();
  }

  signal(name: NodeJS.Signals): void {
    this.#tell({ type: "signal", name });
  }

  /** SIGTERM, and SIGKILL after the grace. */
  stop(): void {
    this.#tell({ type: "stop" });
  }

  kill(): void {
    this.#tell({ type: "kill" });
  }

  /** Ends the supervisor, and the command if it still runs. Resolves when the supervisor is gone. */
  async dismiss(): Promise<void> {
    this.#pipe?.destroy();
    const last = setTimeout(() => this.#process.kill("SIGKILL"), LAST_WORD_MS);
    await this.#gone;
    clearTimeout(last);
  }

  #take(word: FromSupervisor, startedAt: number): void {
    switch (word.type) {
      case "ready": {
        const problem = clockProblem(startedAt, word.at, monotonicMs());
        if (problem === null) this.#words.emit("ready");
        else this.#fail(new EnvironmentError("different-clocks", problem));
        return;
      }
      case "started":
        this.group = word.pid;
        return;
      case "overdue":
        this.isOverdue = true;
        return;
      case "ended":
      case "not-started":
        this.group = null;
        this.#words.emit("ended", word);
    }
  }

  /** No more messages will arrive. Waiters that have their result are not affected. */
  #fail(error: Error): void {
    if (this.#words.listenerCount("error") > 0) this.#words.emit("error", error);
  }

  #tell(word: ToSupervisor): void {
    if (this.#pipe?.writable === true) this.#pipe.write(`${JSON.stringify(word)}\n`);
  }

  /** Kills the command from this side if it runs past the grant's end, and the supervisor if it then stays silent. */
  #guard(): void {
    clearTimeout(this.#timer);
    if (this.#until === null) return;
    const inMs = Math.max(0, Math.ceil(this.#until - KILL_EARLY_MS - monotonicMs()));
    const kill = (): void => {
      if (inMs > LONGEST_TIMER_MS) return this.#guard();
      this.isOverdue = true;
      this.#killGroup();
      this.#timer = setTimeout(() => this.#process.kill("SIGKILL"), LAST_WORD_MS);
    };
    this.#timer = setTimeout(kill, Math.min(inMs, LONGEST_TIMER_MS));
  }

  #killGroup(): void {
    if (this.group === null) return;
    try {
      process.kill(-this.group, "SIGKILL");
    } catch {} // ESRCH: the group is empty.
  }
}

/** If both processes read one clock, the supervisor's first reading lies between two of this side. */
function clockProblem(before: number, supervisors: number, after: number): string | null {
  if (before <= supervisors && supervisors <= after) return null;
  return `expected all processes to read one monotonic clock, but it said ${before} here, then ${supervisors} in another process, then ${after} here`;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class Interruption {
  /** The first received signal, if any. */
  received: NodeJS.Signals | null = null;
  /** Whether Ctrl-C was pressed. The system may deliver simultaneous signals in any order. */
  #isInterrupted = false;
  readonly #controller = new AbortController();
  #supervisor: Supervisor | null = null;

  constructor() {
    for (const name of SIGNALS) process.on(name, () => this.#take(name));
  }

  /** Aborted by a signal while no command runs. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Forwards signals to the command of this supervisor. Null if none runs. */
  handTo(supervisor: Supervisor | null): void {
    this.#supervisor = supervisor;
  }

  #take(name: NodeJS.Signals): void {
    const isAgain = this.received !== null;
    this.received ??= name;
    if (this.#supervisor !== null) {
      if (this.#isInterrupted && name === "SIGINT") this.#supervisor.kill();
      else this.#supervisor.signal(name);
      this.#isInterrupted ||= name === "SIGINT";
    } else if (isAgain) process.exit(codeAfter(name));
    else this.#controller.abort();
  }
}

/** Exit codes of `coterie lock` and `coterie elect` that are not the command's own. */
export const NOT_ACQUIRED = 75;
export const LOST = 76;
const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

export interface SupervisedCommand {
  readonly name: string;
  readonly command: readonly string[];
  readonly graceMs: number;
}

export interface Outcome {
  readonly exitCode: number;
  /** The command was stopped because its grant was lost, or could not be confirmed in time. */
  readonly isLost: boolean;
}

/**
 * Runs the command. When this resolves, no process of its process group runs.
 * @throws ExitWith if the command could not be started, EnvironmentError if its supervisor failed.
 */
export async function runSupervised(
  { name, command, graceMs }: SupervisedCommand,
  tenure: Tenure,
  supervisor: Supervisor,
  interruption: Interruption,
): Promise<Outcome> {
  await supervisor.ready;
  if (interruption.received !== null) return { exitCode: codeAfter(interruption.received), isLost: false };
  if (tenure.signal.aborted) return { exitCode: LOST, isLost: true };
  const stopFollowing = tenure.onDeadline((deadline) =>
    supervisor.certain(monotonicMs() + deadline - performance.now()),
  );
  let isLost = false;
  const lose = (): void => {
    isLost = true;
    supervisor.stop();
  };
  interruption.handTo(supervisor);
  const running = supervisor.run({ command, env: environment(name, tenure), graceMs });
  tenure.signal.addEventListener("abort", lose);
  try {
    const ended = await running;
    return { exitCode: exitCode(ended, command), isLost: isLost || supervisor.isOverdue };
  } finally {
    interruption.handTo(null);
    tenure.signal.removeEventListener("abort", lose);
    stopFollowing();
  }
}

function environment(name: string, { token }: Tenure): Record<string, string> {
  return { COTERIE_NAME: name, COTERIE_TOKEN: token === null ? "" : String(token) };
}

function exitCode(ended: Ended, command: readonly string[]): number {
  if (ended.type === "not-started") {
    const code = ended.code === "ENOENT" ? NOT_FOUND : NOT_EXECUTABLE;
    throw new ExitWith(code, `cannot run ${command[0]}: ${WHY[ended.code] ?? "the system refused"} (${ended.code})`);
  }
  return ended.code ?? codeAfter(ended.signal as NodeJS.Signals);
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: "there is no such command",
  EACCES: "it cannot be executed",
  E2BIG: "its arguments are too long",
};
