/**
 * Virtual time. Events happen one at a time, in the order of their due times, and the clock jumps from one to the next.
 * All promises that an event has settled run to completion before the next event. To ensure this, each event gets its
 * own turn of the real event loop, which is the only real asynchrony. Code with promises can therefore run in only one
 * order.
 */
import { InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import { eventQueue } from "../sim/event-queue.ts";

/** A scheduled event. `cancel` removes it. */
export interface Due {
  cancel(): void;
}

/** The place where an event runs. It may be unable to run the event when the event is due. */
export interface Place {
  /** Whether the event can run now. If not, the place either holds it back or drops it. */
  takes(due: Scheduled): boolean;
}

/**
 * The number of event-loop turns that are requested together. Node runs promises between any two of them, but polls
 * only after all of them.
 */
const TURNS = 128;
/** The maximum number of events at the same time. More than this indicates an endless loop. */
const MAX_AT_ONE_TIME = 100_000;

/** An event in virtual time. */
export class Scheduled implements Due {
  constructor(
    public run: (() => void) | null,
    readonly place: Place | null,
  ) {}

  cancel(): void {
    this.run = null;
  }
}

/** The run that is currently advancing time. */
interface Drive {
  readonly until: number;
  readonly fail: (error: unknown) => void;
}

/** A world's clock and event queue. */
export class VirtualTime {
  /** The time in milliseconds since the world began. */
  now = 0;
  /** The number of events that have run. */
  count = 0;
  /** A hash of the times of all events. If two runs have the same digest, they took the same course. */
  digest = 0;
  readonly #queue = eventQueue();
  readonly #slots: (Scheduled | undefined)[] = [];
  readonly #free: number[] = [];
  #drive: Drive | null = null;
  #atThisTime = 0;

  /** Whether a run is in progress. */
  get isDriven(): boolean {
    return this.#drive !== null;
  }

  after(delayMs: number, run: () => void, place: Place | null = null): Due {
    return this.at(this.now + delayMs, run, place);
  }

  /** Schedules an event. Events that are due at the same time run in the order they were scheduled. */
  at(time: number, run: () => void, place: Place | null = null): Due {
    const scheduled = new Scheduled(run, place);
    this.again(time, scheduled);
    return scheduled;
  }

  /** Adds an event to the queue. The event is either new or one that a place has held back. */
  again(time: number, scheduled: Scheduled): void {
    if (Number.isNaN(time))
      throw new InvariantViolation("bad-time", unexpected("the time of an event", "a number", time));
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = scheduled;
    this.#queue.push(Math.max(time, this.now), slot);
  }

  /**
   * Advances time until the body's result has settled.
   * @throws UsageError `world-at-rest` if no events are left, `world-too-long` after `limitMs`; any error thrown by an
   * event
   */
  drive<T>(body: () => T | PromiseLike<T>, limitMs: number): Promise<T> {
    if (this.#drive !== null)
      throw new UsageError(
        "world-is-running",
        "expected one run of the world at a time, but another has not ended yet",
      );
    return new Promise<T>((resolve, reject) => {
      const end = (settle: () => void): void => {
        if (this.#drive !== drive) return;
        this.#drive = null;
        settle();
      };
      const fail = (error: unknown): void =>
        end(() => reject(error instanceof Error ? error : new Error(String(error))));
      const drive: Drive = { until: this.now + limitMs, fail };
      this.#drive = drive;
      this.#atThisTime = 0;
      void (async () => body())().then((value) => end(() => resolve(value)), fail);
      this.#plan(drive);
    });
  }

  /** Ends the run with an error that occurred outside any event. */
  fail(error: unknown): void {
    this.#drive?.fail(error);
  }

  #plan(drive: Drive): void {
    const turn = (): void => this.#turn(drive);
    for (let i = 1; i < TURNS; i++) setImmediate(turn);
    setImmediate(() => {
      turn();
      if (this.#drive === drive) this.#plan(drive);
    });
  }

  #turn(drive: Drive): void {
    if (this.#drive !== drive) return;
    try {
      const run = this.#next(drive);
      this.count += 1;
      run();
    } catch (error) {
      drive.fail(error);
    }
  }

  /** Removes the earliest event that has not been canceled from the queue, and advances time to it. */
  #next({ until }: Drive): () => void {
    for (;;) {
      const at = this.#queue.next();
      if (at === Number.POSITIVE_INFINITY) throw atRest(this.now);
      if (at > until) throw tooLong(until);
      const slot = this.#queue.pop();
      const scheduled = this.#slots[slot] as Scheduled;
      this.#slots[slot] = undefined;
      this.#free.push(slot);
      if (scheduled.run === null) continue;
      this.#atThisTime = at === this.now ? this.#atThisTime + 1 : 0;
      if (this.#atThisTime > MAX_AT_ONE_TIME) throw endless(at);
      this.now = at;
      this.digest = (Math.imul(this.digest, 31) + Math.imul(at * 1e6, 0x9e3779b1)) | 0;
      if (scheduled.place === null || scheduled.place.takes(scheduled)) return scheduled.run;
    }
  }
}

const LIKELY =
  "in a world, wait only for members and for the world's own sleep() and setTimeout(), not for real timers, files, sockets or child processes";

const atRest = (now: number): UsageError =>
  new UsageError(
    "world-at-rest",
    `the run has not ended, but no events are left after ${now.toFixed(1)} ms: it is waiting for something outside this world${realWork()}. Expected: ${LIKELY}`,
  );

const tooLong = (until: number): UsageError =>
  new UsageError(
    "world-too-long",
    `the run has not ended by ${until} ms of virtual time: it is waiting for something that never happens or is outside this world${realWork()}. Expected: ${LIKELY}; or give run() a higher limitMs`,
  );

const endless = (at: number): UsageError =>
  new UsageError(
    "world-stands-still",
    `more than ${MAX_AT_ONE_TIME} events at ${at.toFixed(1)} ms: something repeats without waiting, which keeps time from advancing`,
  );

/** Describes the real work that Node is doing, to identify the cause, which is usually a timer or a file. */
function realWork(): string {
  const kinds = new Set(process.getActiveResourcesInfo().filter((kind) => REAL_WORK.test(kind)));
  return kinds.size === 0 ? "" : ` (in progress in this process: ${[...kinds].join(", ")})`;
}

const REAL_WORK = /^(Timeout|FS|TCP|TLS|Process|GetAddrInfo|Pipe|UDP)/;
