/** Three members in processes of their own, which can be killed, paused and started again. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Timing } from "../../src/cluster/services/timing.ts";
import { freePorts } from "../multicast/group.ts";
import { type Answers, type Ask, type Being, type Note, type Standing, sharedNowMs } from "./asks.ts";

/** As compiled, or as it stands. */
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const memberFile = fileURLToPath(new URL(`../services-member${extension}`, import.meta.url));
/** Far more than any step takes. */
const PATIENCE_MS = 60_000;
const LOOK_EVERY_MS = 20;
const IDS = [1, 2, 3] as const;

export type Deed = "kill" | "stop" | "leave";

interface Reply {
  readonly number: number;
  readonly answer?: unknown;
  readonly error?: string;
}

interface Waiting {
  fits(from: number, note: Note): boolean;
  resolve(note: Note): void;
}

export class Group {
  /** Those that have not ended yet, for Ctrl-C. */
  static readonly #all = new Set<Group>();

  readonly ids: readonly number[] = IDS;
  readonly #timing: Timing;
  readonly #members: Readonly<Record<number, string>>;
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-services-"));
  readonly #children = new Map<number, ChildProcess>();
  readonly #replies = new Map<number, (reply: Reply) => void>();
  readonly #waiting = new Set<Waiting>();
  #number = 0;

  private constructor(timing: Timing, ports: readonly number[]) {
    this.#timing = timing;
    this.#members = Object.fromEntries(IDS.map((id, at) => [id, `127.0.0.1:${ports[at]}`]));
    Group.#all.add(this);
  }

  /**
   * Starts the members and waits until the log has a leader and the channel has a view of all. A port that was free may be taken
   * before its member listens: then others are tried.
   */
  static async of(timing: Timing, attempts = 3): Promise<Group> {
    const group = new Group(timing, await freePorts(IDS.length));
    for (const id of IDS) group.start(id);
    try {
      await group.settled();
      return group;
    } catch (error) {
      group.end();
      if (attempts === 1) throw error;
      return Group.of(timing, attempts - 1);
    }
  }

  static endAll(): void {
    for (const group of Group.#all) group.end();
  }

  start(id: number): void {
    const being: Being = {
      id,
      members: this.#members,
      dataDir: join(this.#folder, String(id)),
      timing: this.#timing,
    };
    const child = fork(memberFile, [JSON.stringify(being)]);
    child.setMaxListeners(0); // Each question that is under way listens for its end.
    this.#children.set(id, child);
    child.on("message", (said: Reply | Note) => {
      if ("number" in said) this.#replies.get(said.number)?.(said);
      else for (const waiting of [...this.#waiting]) if (waiting.fits(id, said)) waiting.resolve(said);
    });
  }

  ask<A extends Ask["ask"]>(id: number, ask: Ask & { ask: A }): Promise<Answers[A]> {
    const number = ++this.#number;
    const child = this.#children.get(id) as ChildProcess;
    return within(`the answer of member ${id} to ${ask.ask}`, (resolve, reject) => {
      const gone = (): void => reject(new Error(`member ${id} ended before it answered ${ask.ask}`));
      child.once("exit", gone);
      this.#replies.set(number, ({ answer, error }) => {
        this.#replies.delete(number);
        child.off("exit", gone);
        if (error === undefined) resolve(answer as Answers[A]);
        else reject(new Error(error));
      });
      child.send({ number, ask });
    });
  }

  all<A extends Ask["ask"]>(ask: Ask & { ask: A }, ids: readonly number[] = IDS): Promise<Answers[A][]> {
    return Promise.all(ids.map((id) => this.ask<A>(id, ask)));
  }

  /** The next note that fits, from now on. */
  next(what: string, fits: (from: number, note: Note) => boolean): Promise<Note> {
    return within(what, (resolve) => {
      const waiting: Waiting = {
        fits,
        resolve: (note) => {
          this.#waiting.delete(waiting);
          resolve(note);
        },
      };
      this.#waiting.add(waiting);
    });
  }

  /** Resolves once all members reach each other, agree on the leader of the log, and are in the same view. */
  async settled(): Promise<Standing> {
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until) {
      const [first, ...others] = await this.all({ ask: "standing" });
      const isWhole = (one: Standing): boolean =>
        one.reachable === IDS.length && one.isInView && one.viewMembers.length === IDS.length;
      const agrees = ({ view, leader }: Standing): boolean => view === first?.view && leader === first.leader;
      const isLed = first !== undefined && first.leader !== null;
      if (isLed && [first, ...others].every(isWhole) && others.every(agrees)) return first;
      await sleep(LOOK_EVERY_MS);
    }
    throw new Error(`the members have not come together within ${PATIENCE_MS} ms`);
  }

  /** When it was done, on the shared clock; `over` resolves with how long a member took to leave. */
  do(deed: Deed, id: number): { readonly atMs: number; readonly over: Promise<number | null> } {
    const atMs = sharedNowMs();
    if (deed === "leave") return { atMs, over: this.ask(id, { ask: "leave" }).then(({ tookMs }) => tookMs) };
    this.signal(id, deed === "kill" ? "SIGKILL" : "SIGSTOP");
    return { atMs, over: Promise.resolve(null) };
  }

  /** After a deed: the member runs again. */
  async undo(deed: Deed, id: number): Promise<void> {
    if (deed === "stop") return this.signal(id, "SIGCONT");
    const child = this.#children.get(id) as ChildProcess;
    const isGone = child.exitCode !== null || child.signalCode !== null;
    const gone = isGone ? null : new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
    this.start(id);
  }

  end(): void {
    for (const id of this.#children.keys()) this.signal(id, "SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
    Group.#all.delete(this);
  }

  get children(): readonly ChildProcess[] {
    return [...this.#children.values()];
  }

  signal(id: number, signal: NodeJS.Signals): void {
    this.#children.get(id)?.kill(signal);
  }
}

/** Ends with an error rather than never. */
function within<T>(
  what: string,
  begin: (resolve: (it: T) => void, reject: (error: Error) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = new Error(`${what} has not come within ${PATIENCE_MS} ms`);
    const timer = setTimeout(() => reject(late), PATIENCE_MS);
    const settle =
      <V>(end: (value: V) => void) =>
      (value: V): void => {
        clearTimeout(timer);
        end(value);
      };
    begin(settle(resolve), settle(reject));
  });
}
