/** One node of a local cluster, across all its incarnations: its process, latest view and fault injector. */
import { setTimeout as sleep } from "node:timers/promises";
import { UsageError } from "../../core/errors.ts";
import type { NodeId, View } from "../../core/protocol.ts";
import { type Faults, noFaults } from "../../runtime/fault-injector.ts";
import { wallClock } from "../../runtime/platform/wall-clock.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { differenceOf } from "../../trace/standing.ts";
import { askStatus, putFaults } from "../admin-client.ts";
import type { NodePicture } from "../feed.ts";
import type { LifecycleEvent } from "./lifecycle.ts";
import { type Exit, type Launch, type MemberProcess, startProcess } from "./member-process.ts";
import { commandNamed, offeredCommands } from "./offered-commands.ts";
import { PauseNotes } from "./pause-notes.ts";
import { listenToTrace } from "./trace-intake.ts";

const FIRST_RESTART_MS = 1_000;
const LAST_RESTART_MS = 10_000;
/** A process that ran longer than this resets the restart delay when it exits. */
const LONG_LIFE_MS = 10_000;
/** The exit code for invalid options or an invalid folder. A restart would fail again. */
const USAGE_EXIT_CODE = 2;
const ASK_AGAIN_MS = 100;
/** How long trace entries may take to arrive. Members send them every 20 ms. */
const WORDS_ARRIVE_WITHIN_MS = 100;
/** How long to wait for the last trace entries from a dead process. */
const LAST_WORDS_MS = 250;

/** The parts of the cluster that a member uses. */
export interface Surroundings {
  readonly launch: Launch;
  /** Whether to restart a process that crashes. */
  readonly restarts: boolean;
  readonly onEvent: (event: LifecycleEvent) => void;
  readonly log: (node: NodeId, line: string) => void;
  readonly record: (node: NodeId, line: string, entry: TraceEntry) => void;
  readonly changed: () => void;
  readonly wantedFaults: (node: NodeId) => Faults;
}

/** One node of a local cluster. */
export class LocalMember {
  readonly #around: Surroundings;
  readonly #byzantine: string | undefined;
  state: NodePicture["process"] = "starting";
  view: View | null = null;
  #exit: Exit | null = null;
  /** Commands, with the names of their fields. */
  #fields: Readonly<Record<string, readonly string[]>> = {};
  #saidCount = 0;
  /** The number of views that this node has reported. */
  #viewCount = 0;
  #commands: readonly string[] = [];
  #process: MemberProcess | null = null;
  #startedAt = 0;
  #quickDeaths = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #stopping = false;
  #pauses = this.#newPauses();
  /** The time of the last trace entry from the node's process. */
  #words = { lastAt: 0 };
  /** When the supervisor killed the process. */
  #killedAt: number | null = null;
  #endTrace: (() => Promise<void>) | null = null;
  /** The faults that the fault injector has received, as JSON. A new process has none. */
  #told = JSON.stringify(noFaults);
  #telling: Promise<void> | null = null;

  constructor(
    readonly id: NodeId,
    readonly address: string,
    readonly admin: string,
    around: Surroundings,
    byzantine: string | undefined = undefined,
  ) {
    this.#around = around;
    this.#byzantine = byzantine;
  }

  /** The node's Byzantine behavior, if any. */
  get lying(): { byzantine?: string } {
    return this.#byzantine === undefined ? {} : { byzantine: this.#byzantine };
  }

  get pid(): number | null {
    return this.state === "exited" ? null : (this.#process?.pid ?? null);
  }

  get picture(): NodePicture {
    const { id, pid, address, admin, state, view } = this;
    const commands = this.#commands;
    return { id, pid, address, admin, process: state, exit: this.#exit?.words ?? null, view, ...this.lying, commands };
  }

  start(): void {
    clearTimeout(this.#restartTimer);
    this.state = "starting";
    this.#startedAt = Date.now();
    this.#told = JSON.stringify(noFaults);
    this.#killedAt = null;
    this.#pauses = this.#newPauses();
    this.#words = { lastAt: 0 };
    this.#process = startProcess(this.#around.launch, this.id, {
      onListening: () => this.#listening(),
      onLog: (line) => this.#around.log(this.id, line),
      onExit: (exit) => this.#ended(exit),
    });
    this.#around.changed();
  }

  /** @throws UsageError if the node's process is already running */
  restart(): void {
    if (this.state !== "exited")
      throw new UsageError("bad-act", `expected node ${this.id} to have exited, but it is ${this.state}`);
    this.start();
  }

  /**
   * Sends a signal.
   * @throws UsageError if the process is not running
   */
  signal(name: NodeJS.Signals): void {
    if (this.state === "exited" || this.#process === null)
      throw new UsageError("bad-act", `expected node ${this.id} to be alive, but it has exited`);
    if (name === "SIGKILL") this.#killedAt = wallClock();
    this.#pauses.signalled(name);
    this.#process.signal(name);
  }

  /** Stops the process, even if it is paused, and does not restart it. */
  stop(name: "SIGTERM" | "SIGKILL"): void {
    this.#stopping = true;
    clearTimeout(this.#restartTimer);
    if (this.state === "exited") return;
    this.#process?.signal(name);
    this.#process?.signal("SIGCONT");
  }

  /**
   * Updates whether the process is paused. Called with the operating system's answer, no matter who paused the process.
   */
  observe(paused: boolean): void {
    if (paused && this.state === "paused") this.#pauses.seenStillPaused();
    if (this.pid === null || this.state === "starting" || paused === (this.state === "paused")) return;
    this.state = paused ? "paused" : "running";
    if (paused) this.#pauses.seenPaused();
    else this.#pauses.seenRunning();
    this.#around.onEvent({ event: paused ? "paused" : "resumed", node: this.id, pid: this.pid });
    this.#around.changed();
    if (paused) return;
    void this.tellFaults();
    void this.#getAcquainted();
  }

  /** Sends the desired faults to the fault injector. Retries until it has accepted them or the process has ended. */
  tellFaults(): Promise<void> {
    this.#telling ??= this.#tellUntilHeard().finally(() => {
      this.#telling = null;
    });
    return this.#telling;
  }

  async #tellUntilHeard(): Promise<void> {
    for (;;) {
      const process = this.#process;
      const faults = this.#around.wantedFaults(this.id);
      const text = JSON.stringify(faults);
      if (text === this.#told || this.state !== "running") return;
      const heard = await putFaults(this.admin, faults).then(
        () => true,
        () => false,
      );
      if (!heard) await sleep(ASK_AGAIN_MS);
      else if (process === this.#process) this.#told = text;
    }
  }

  #listening(): void {
    this.state = "running";
    this.#exit = null;
    if (this.pid !== null) this.#around.onEvent({ event: "started", node: this.id, pid: this.pid });
    this.#around.changed();
    const process = this.#process;
    const words = { lastAt: 0 };
    this.#words = words;
    this.#endTrace = listenToTrace(this.admin, this.id, (entry, line) => {
      if (entry.kind !== "gap") words.lastAt = entry.at;
      if (entry.kind !== "gap" && process === this.#process) this.#pauses.did(entry.at);
      this.#around.record(this.id, line, entry);
      if (process !== this.#process || this.state === "exited") return; // These are a dead process's last entries.
      if (entry.kind === "view") this.#see(entry.view);
      if (entry.kind === "gap") void this.#getAcquainted();
    });
    void this.#getAcquainted();
    void this.tellFaults();
  }

  /** Returns the command with the given name, in the form that the member accepts. */
  commandNamed(name: string): object {
    return commandNamed(this.#fields, name, ++this.#saidCount);
  }

  /**
   * Requests the member's commands and, unless the trace has already reported it, its view. Retries until the member
   * answers.
   */
  async #getAcquainted(): Promise<void> {
    const process = this.#process;
    const isThere = (): boolean => this.state === "running" && process === this.#process;
    while (isThere()) {
      const viewCount = this.#viewCount;
      const status = await askStatus(this.admin, this.id);
      if (status !== null && isThere()) {
        this.#commands = offeredCommands(status.commands);
        this.#fields = status.commands;
        if (viewCount === this.#viewCount)
          this.#see(status.view); // Otherwise, the view from the trace is newer.
        else this.#around.changed();
        return;
      }
      await sleep(ASK_AGAIN_MS);
    }
  }

  #newPauses(): PauseNotes {
    return new PauseNotes((at, kind) => this.#note({ at, node: this.id, kind }), WORDS_ARRIVE_WITHIN_MS);
  }

  /** Adds a change to the faults on the node's links to the trace. */
  noteFault(what: string): void {
    this.#noteLater({ at: wallClock(), node: this.id, kind: "fault", what });
  }

  /**
   * Adds an entry that the process cannot write itself. Waits until the process's earlier entries have arrived, so that
   * the trace is in order.
   */
  #noteLater(entry: TraceEntry): void {
    setTimeout(() => this.#note(entry), WORDS_ARRIVE_WITHIN_MS).unref();
  }

  #note(entry: TraceEntry): void {
    this.#around.record(this.id, JSON.stringify(entry), entry);
  }

  /**
   * Adds the crash to the trace, after waiting briefly for the last entries from the dead process. If the supervisor
   * killed the process, the entry has the time of the kill, since other members may have noticed before the supervisor
   * did.
   */
  async #noteCrash(): Promise<void> {
    const words = this.#words;
    const endedAt = this.#killedAt ?? wallClock();
    await Promise.race([this.#endTrace?.(), sleep(LAST_WORDS_MS, undefined, { ref: false })]);
    this.#note({ at: Math.max(endedAt, words.lastAt), node: this.id, kind: "crash" });
  }

  #see(view: View): void {
    const difference = differenceOf(this.view, view);
    this.view = view;
    this.#viewCount += 1;
    // Buffered messages and log indices may change with every message. A page that draws them follows the trace.
    if (difference === "none" || difference === "standing") this.#around.changed();
  }

  #ended(exit: Exit): void {
    const { pid } = this;
    void this.#noteCrash();
    this.state = "exited";
    this.#exit = exit;
    this.view = null;
    const isInVain = exit.code === USAGE_EXIT_CODE;
    const restartInMs = this.#stopping || !this.#around.restarts || isInVain ? null : this.#restartDelay();
    if (restartInMs !== null) this.#restartTimer = setTimeout(() => this.start(), restartInMs);
    const { signal, code } = exit;
    this.#around.onEvent({ event: "exited", node: this.id, pid, signal, code, restartInMs });
    this.#around.changed();
  }

  /** Returns the delay before the next restart. It increases if the process keeps dying quickly. */
  #restartDelay(): number {
    this.#quickDeaths = Date.now() - this.#startedAt < LONG_LIFE_MS ? this.#quickDeaths + 1 : 0;
    const doublings = Math.max(0, this.#quickDeaths - 1);
    return Math.min(FIRST_RESTART_MS * 2 ** doublings, LAST_RESTART_MS);
  }
}
