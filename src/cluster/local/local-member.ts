/** One node of a local cluster over all its incarnations: its process, its latest view, its fault injector. */
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
/** A process that ran longer than this did not fail for the same reason as before. */
const LONG_LIFE_MS = 10_000;
/** Its options or its folder are invalid: a restart would fail again. */
const USAGE_EXIT_CODE = 2;
const ASK_AGAIN_MS = 100;
/** Members send their traces every 20 ms. */
const WORDS_ARRIVE_WITHIN_MS = 100;
/** The connection to a dead process ends within this time. */
const LAST_WORDS_MS = 250;

/** The part of the cluster that a member uses. */
export interface Surroundings {
  readonly launch: Launch;
  /** Whether a crashed process is restarted. */
  readonly restarts: boolean;
  readonly onEvent: (event: LifecycleEvent) => void;
  readonly log: (node: NodeId, line: string) => void;
  readonly record: (node: NodeId, line: string, entry: TraceEntry) => void;
  readonly changed: () => void;
  readonly wantedFaults: (node: NodeId) => Faults;
}

export class LocalMember {
  readonly #around: Surroundings;
  readonly #byzantine: string | undefined;
  state: NodePicture["process"] = "starting";
  view: View | null = null;
  #exit: Exit | null = null;
  /** Commands with the names of their fields. */
  #fields: Readonly<Record<string, readonly string[]>> = {};
  #saidCount = 0;
  /** How many views this node has reported. */
  #viewCount = 0;
  #commands: readonly string[] = [];
  #process: MemberProcess | null = null;
  #startedAt = 0;
  #quickDeaths = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #stopping = false;
  #pauses = this.#newPauses();
  /** The time of its process's last trace entry. */
  #words = { lastAt: 0 };
  /** When the supervisor killed it. */
  #killedAt: number | null = null;
  #endTrace: (() => Promise<void>) | null = null;
  /** The faults that its fault injector has received, as JSON; a new process has none. */
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

  /** Its Byzantine behavior. */
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

  /** @throws UsageError if its process already runs. */
  restart(): void {
    if (this.state !== "exited")
      throw new UsageError("bad-act", `expected node ${this.id} to have exited, but it is ${this.state}`);
    this.start();
  }

  /** Sends a signal. @throws UsageError if the process does not run. */
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

  /** Called with the operating system's answer: whether the process is paused, by us or by anyone else. */
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

  /** Sends the wanted faults to the fault injector, repeatedly until it has accepted them or the process no longer runs. */
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
      if (process !== this.#process || this.state === "exited") return; // These are the last entries of a dead process.
      if (entry.kind === "view") this.#see(entry.view);
      if (entry.kind === "gap") void this.#getAcquainted();
    });
    void this.#getAcquainted();
    void this.tellFaults();
  }

  /** The command of this name as the member accepts it. */
  commandNamed(name: string): object {
    return commandNamed(this.#fields, name, ++this.#saidCount);
  }

  /** Asks the member for its commands and, unless the trace has reported it, its view. Repeats this until it answers. */
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
          this.#see(status.view); // Otherwise the trace's view is newer.
        else this.#around.changed();
        return;
      }
      await sleep(ASK_AGAIN_MS);
    }
  }

  #newPauses(): PauseNotes {
    return new PauseNotes((at, kind) => this.#note({ at, node: this.id, kind }), WORDS_ARRIVE_WITHIN_MS);
  }

  /** Adds a fault of its links to the trace. */
  noteFault(what: string): void {
    this.#noteLater({ at: wallClock(), node: this.id, kind: "fault", what });
  }

  /**
   * Entries that the process cannot write itself are added once its earlier entries have arrived, so that the trace is in
   * order.
   */
  #noteLater(entry: TraceEntry): void {
    setTimeout(() => this.#note(entry), WORDS_ARRIVE_WITHIN_MS).unref();
  }

  #note(entry: TraceEntry): void {
    this.#around.record(this.id, JSON.stringify(entry), entry);
  }

  /**
   * Waits for its last entries, which are still arriving, but only briefly, since the process is dead. If it was killed
   * here, the entry has that time: other members may have noticed before the supervisor did.
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
    // Buffered messages and log indices may change with every message; a page that draws them follows the trace.
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

  /** A process that keeps dying quickly restarts less and less often. */
  #restartDelay(): number {
    this.#quickDeaths = Date.now() - this.#startedAt < LONG_LIFE_MS ? this.#quickDeaths + 1 : 0;
    const doublings = Math.max(0, this.#quickDeaths - 1);
    return Math.min(FIRST_RESTART_MS * 2 ** doublings, LAST_RESTART_MS);
  }
}
