/**
 * The part that runs in `coterie`: starts a supervisor process, gives it one command to run, and receives the result.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import type { Duplex } from "node:stream";
import { eachLine } from "../../cluster/local/lines.ts";
import type { Tenure } from "../../cluster/services/api.ts";
import { EnvironmentError } from "../../core/errors.ts";
import { packageFile } from "../../runtime/package-files.ts";
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

/**
 * If the supervisor is paused or stuck, this process kills the command this long before the grant ends, which is later
 * than the supervisor would.
 */
const KILL_EARLY_MS = 10;
/** How long the supervisor has to report the end of a killed command, or to exit, before it is killed itself. */
const LAST_WORD_MS = 1_000;

const SCRIPT = packageFile("dist/cli/supervisor/supervisor-process.js");

/** Runs one command. Start the supervisor early, so that the command can start as soon as there is a grant. */
export class Supervisor {
  /** Whether the grant was not confirmed in time, so that the command was requested to end or was killed. */
  isOverdue = false;
  /** The command's process group. Null before this process knows it and after the command has ended. */
  group: number | null = null;
  readonly #words = new EventEmitter<{ ready: []; ended: [Ended]; error: [Error] }>();
  readonly #process: ChildProcess;
  readonly #pipe: Duplex | undefined;
  /**
   * Resolves when the supervisor is running and waiting for a command. Rejects with an EnvironmentError if it cannot be
   * started.
   */
  readonly ready: Promise<unknown>;
  readonly #ended: Promise<[Ended]>;
  readonly #gone: Promise<void>;
  #until: number | null = null;
  #isRunning = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(script = SCRIPT) {
    this.ready = once(this.#words, "ready");
    this.#ended = once(this.#words, "ended") as Promise<[Ended]>;
    // Either promise may reject before it is first awaited.
    for (const awaited of [this.ready, this.#ended]) awaited.catch(() => {});
    const startedAt = monotonicMs();
    this.#process = spawn(process.execPath, [script], {
      stdio: ["inherit", "inherit", "inherit", "pipe"],
      detached: true, // Ctrl-C in the terminal then reaches only `coterie`, which forwards it.
    });
    this.#gone = new Promise((resolve) => {
      this.#process.on("error", (error) => {
        this.#fail(new EnvironmentError("no-supervisor", `cannot start a process: ${error.message}`, { cause: error }));
        if (this.#process.pid === undefined) resolve();
      });
      // `close` is emitted after all messages have been read.
      this.#process.on("close", (code, signal) => {
        this.#killGroup();
        const how = signal === null ? `ended with code ${code}` : `was ended by ${signal}`;
        this.#fail(new EnvironmentError("supervisor-ended", `the process that watched over the command ${how}`));
        resolve();
      });
    });
    // The pipe is undefined if there are too many open files. In that case, `error` follows.
    this.#pipe = this.#process.stdio?.[PIPE] as Duplex | undefined;
    this.#pipe?.on("error", () => {}); // A `close` event follows.
    if (this.#pipe !== undefined)
      eachLine(this.#pipe, MAX_LINE_LENGTH, (line) => this.#take(JSON.parse(line) as FromSupervisor, startedAt));
  }

  /**
   * Runs the command. Call this only once.
   * @throws EnvironmentError if the supervisor cannot be started, or if it is killed
   */
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

  /**
   * Sets the time until which the grant is certain, on the `monotonicMs` clock. If this is never called, the grant does
   * not expire.
   */
  certain(until: number): void {
    this.#until = until;
    if (!this.#isRunning) return;
    this.#tell({ type: "certain", until });
    this.#guard();
  }

  signal(name: NodeJS.Signals): void {
    this.#tell({ type: "signal", name });
  }

  /** Sends SIGTERM to the command, followed by SIGKILL after the grace period. */
  stop(): void {
    this.#tell({ type: "stop" });
  }

  kill(): void {
    this.#tell({ type: "kill" });
  }

  /** Ends the supervisor, and the command if it is still running. Resolves when the supervisor has exited. */
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

  /** Emits an error that rejects pending waits, since no more messages will arrive. */
  #fail(error: Error): void {
    if (this.#words.listenerCount("error") > 0) this.#words.emit("error", error);
  }

  #tell(word: ToSupervisor): void {
    if (this.#pipe?.writable === true) this.#pipe.write(`${JSON.stringify(word)}\n`);
  }

  /**
   * Kills the command from this process if it runs past the end of the grant, and then also the supervisor if it
   * remains silent.
   */
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

/**
 * Returns a problem if the two processes do not read the same clock. If they do, the supervisor's first reading lies
 * between two readings taken by this process.
 */
function clockProblem(before: number, supervisors: number, after: number): string | null {
  if (before <= supervisors && supervisors <= after) return null;
  return `expected all processes to read one monotonic clock, but it read ${before} here, then ${supervisors} in another process, then ${after} here`;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The signals that this process receives while a command is running. */
export class Interruption {
  /** The first received signal, if any. */
  received: NodeJS.Signals | null = null;
  /** Whether Ctrl-C was pressed. If signals arrive at the same time, the system may deliver them in any order. */
  #isInterrupted = false;
  readonly #controller = new AbortController();
  #supervisor: Supervisor | null = null;

  constructor() {
    for (const name of SIGNALS) process.on(name, () => this.#take(name));
  }

  /** Aborted by a signal that arrives while no command is running. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** From now on, forwards signals to this supervisor's command. Null if no command is running. */
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

/** The exit code of `coterie lock` and `coterie elect` if the grant could not be acquired. */
export const NOT_ACQUIRED = 75;
/** The exit code if the grant was lost. */
export const LOST = 76;
const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

/** A command to supervise. */
export interface SupervisedCommand {
  readonly name: string;
  readonly command: readonly string[];
  readonly graceMs: number;
}

/** The outcome of a supervised command. */
export interface Outcome {
  readonly exitCode: number;
  /** Whether the command was stopped because its grant was lost or could not be confirmed in time. */
  readonly isLost: boolean;
}

/**
 * Runs the command. Once this resolves, no process in the command's process group is running.
 * @throws ExitWith if the command could not be started, EnvironmentError if its supervisor failed
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
