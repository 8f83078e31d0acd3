/**
 * Elections and locks that a member holds on behalf of other programs on its machine, each in its own session. A
 * program may die or be paused without notice, and processes that it started may run for a moment longer. Therefore,
 * unless the program reports that it is done, its lock is released only after the last deadline that the program
 * received.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import type { OpenSession, SessionHost } from "../../runtime/session-pages.ts";
import type { Election, Kind, Member, Mutex, Tenure } from "./api.ts";
import { CoordinationError } from "./coordination-error.ts";
import { onAbort } from "./on-abort.ts";
import { type Feed, feed } from "./reading.ts";
import { toMonotonicNs } from "./session-clock.ts";
import { readWish } from "./session-wish.ts";
import type { SessionWord } from "./session-words.ts";

const MAX_SESSIONS = 128;
/** How long a leaving member waits for a program to report that it is done, if its grant has no deadline. */
const LAST_WORK_MS = 1_000;

type Held = Tenure;

/** The sessions of other programs at this member. */
export class Sessions implements SessionHost {
  readonly #member: Pick<Member, "mutex" | "election">;
  readonly #onRefused: () => void;
  readonly #open = new Map<string, Session>();
  /**
   * The last turn in each election, keyed by the election's name. This process can run only one campaign per election,
   * so sessions take turns.
   */
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();

  constructor(member: Pick<Member, "mutex" | "election">, onRefused: () => void) {
    this.#member = member;
    this.#onRefused = onRefused;
  }

  open(kind: Exclude<Kind, "channel">, name: string, wish: unknown): OpenSession {
    const { timeoutMs, silenceMs = null } = readWish(wish);
    if (kind === "election" && timeoutMs !== undefined)
      throw new UsageError("bad-command", "expected timeoutMs to be absent for an election: a campaign has no timeout");
    if (this.#closing.signal.aborted) throw leaving();
    if (this.#open.size >= MAX_SESSIONS) {
      this.#onRefused();
      throw new EnvironmentError(
        "too-many-sessions",
        `this member already has ${MAX_SESSIONS} sessions, which is the maximum`,
      );
    }
    const session = new Session(silenceMs, this.#closing.signal);
    const held =
      kind === "mutex"
        ? lend(this.#member.mutex(name), session, timeoutMs)
        : this.#elect(this.#member.election(name), session);
    this.#open.set(session.id, session);
    void session.follow(held).finally(() => this.#open.delete(session.id));
    return session;
  }

  keep(id: string): void {
    this.#known(id).keep();
  }

  release(id: string): Promise<void> {
    return this.#known(id).release();
  }

  /** Notifies holders that their grants are lost, and gives them time to stop. Accepts no more sessions. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#open.values()].map((session) => session.given));
  }

  #known(id: string): Session {
    const session = this.#open.get(id);
    if (session !== undefined) return session;
    throw new UsageError("unknown-session", "expected an open session: this one has ended or never existed");
  }

  async #elect(election: Election, session: Session): Promise<void> {
    const { name } = election;
    while (this.#turns.has(name) && !session.left.aborted) await anyAborted([session.left], this.#turns.get(name));
    if (session.left.aborted) return;
    const campaign = campaignOnce(election, session);
    const turn = campaign.catch(() => {});
    this.#turns.set(name, turn);
    try {
      await campaign;
    } finally {
      this.#turns.delete(name);
    }
  }
}

async function lend(mutex: Mutex, session: Session, timeoutMs: number | undefined): Promise<void> {
  const grant = await mutex.acquire({ signal: session.left, timeoutMs });
  try {
    await session.hold(grant);
  } finally {
    await grant.release();
  }
}

/**
 * Campaigns for a single term of leadership. The work always throws, which ends the campaign even if leadership was
 * lost, because each term needs its own session.
 */
async function campaignOnce(election: Election, session: Session): Promise<void> {
  const over = new Error("over");
  const campaign = new AbortController();
  let isElected = false;
  // If already elected, `hold` gives up leadership cleanly.
  const stopHeeding = onAbort(session.left, () => isElected || campaign.abort());
  if (session.left.aborted) campaign.abort();
  const work = async (leadership: Held): Promise<never> => {
    isElected = true;
    await session.hold(leadership);
    throw over;
  };
  try {
    await election.lead(work, { signal: campaign.signal });
  } catch (error) {
    if (!isElected || error instanceof CoordinationError) throw error;
  } finally {
    stopHeeding();
  }
}

class Session implements OpenSession {
  readonly #silenceMs: number | null;
  readonly #closing: AbortSignal;
  readonly id = randomUUID();
  readonly #said: Feed<SessionWord> = feed(latestWords);
  readonly words = this.#said.read(undefined);
  readonly #left = new AbortController();
  readonly #released = new AbortController();
  #isHolding = false;
  #over: () => void = () => {};
  readonly #end = new Promise<void>((resolve) => {
    this.#over = resolve;
  });
  /** The last deadline that the program received, on the scale of `performance.now()`. */
  #told: number | null = null;
  #silence: NodeJS.Timeout | undefined;

  constructor(silenceMs: number | null, closing: AbortSignal) {
    this.#silenceMs = silenceMs;
    this.#closing = closing;
    this.#tell({ event: "waiting", session: this.id, monotonicNs: toMonotonicNs(performance.now()) });
  }

  /** Aborted when the program has disconnected, is considered dead, or is done. */
  get left(): AbortSignal {
    return this.#left.signal;
  }

  /** Resolves once the program no longer holds anything. If it is still waiting, that is immediately. */
  get given(): Promise<void> {
    return this.#isHolding ? this.#end : Promise.resolve();
  }

  readonly leave = (): void => this.#left.abort();

  keep(): void {
    this.#silence?.refresh();
  }

  release(): Promise<void> {
    this.#released.abort();
    this.#left.abort();
    return this.#end;
  }

  /** Follows the session until it ends. */
  async follow(held: Promise<void>): Promise<void> {
    try {
      await held;
    } catch (error) {
      if (this.left.aborted) return; // The cause is the program's own disconnection.
      const code = error instanceof CoordinationError || error instanceof UsageError ? error.code : "failed";
      this.#tell({ event: "refused", code, message: (error as Error).message });
    } finally {
      if (this.#released.signal.aborted) this.#tell({ event: "released" });
      this.#said.close(null);
      this.#over();
    }
  }

  /** @throws CoordinationError if the member is leaving, since it would not wait for the program */
  async hold(tenure: Held): Promise<void> {
    if (this.#closing.aborted) throw leaving();
    this.#isHolding = true;
    this.#tell({ event: "granted", token: tenure.token, ...this.#until(tenure.deadline) });
    const stopFollowing = tenure.onDeadline((deadline) => {
      if (deadline !== this.#told && !this.left.aborted) this.#tell({ event: "certain", ...this.#until(deadline) });
    });
    if (this.#silenceMs !== null) this.#silence = setTimeout(this.leave, this.#silenceMs);
    try {
      await anyAborted([tenure.signal, this.left, this.#closing]);
    } finally {
      stopFollowing();
      clearTimeout(this.#silence);
      this.#silence = undefined;
    }
    if (this.#released.signal.aborted) return;
    this.#tell({ event: "lost" });
    await anyAborted([this.#released.signal], this.#lastMoment());
  }

  /**
   * Waits until the deadline that the program received. If the program respects it, so do the processes that it
   * started.
   */
  async #lastMoment(): Promise<void> {
    const deadline = this.#told;
    if (deadline === null) return anyAborted([this.left], sleep(LAST_WORK_MS));
    const leftMs = (): number => Math.ceil(deadline - performance.now());
    while (leftMs() > 0) await sleep(leftMs()); // A timer may fire a fraction of a millisecond early.
  }

  #until(deadline: number | null): { untilMs: number | null; monotonicNs: string | null } {
    if (deadline === null) return { untilMs: null, monotonicNs: null };
    this.#told = deadline;
    return { untilMs: Math.floor(deadline - performance.now()), monotonicNs: toMonotonicNs(deadline) };
  }

  #tell(word: SessionWord): void {
    this.#said.publish(word);
  }
}

const leaving = (): CoordinationError =>
  new CoordinationError("member-left", "never-acquired", "this member is leaving");

/** Bounds a session's backlog. Most of the messages are `certain`, and only the latest of those matters. */
function latestWords(waiting: readonly SessionWord[], word: SessionWord): SessionWord[] {
  const isReplaced = word.event === "certain" && waiting.at(-1)?.event === "certain";
  return [...(isReplaced ? waiting.slice(0, -1) : waiting), word];
}

/** Resolves once one of the signals is aborted or `other` resolves, and removes all listeners. */
async function anyAborted(signals: readonly AbortSignal[], other?: Promise<unknown>): Promise<void> {
  if (signals.some(({ aborted }) => aborted)) return;
  const stops: (() => void)[] = [];
  const first = new Promise<void>((resolve) => stops.push(...signals.map((signal) => onAbort(signal, resolve))));
  try {
    await (other === undefined ? first : Promise.race([first, other]));
  } finally {
    for (const stop of stops) stop();
  }
}
