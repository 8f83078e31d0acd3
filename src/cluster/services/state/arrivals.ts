/**
 * This process's calls that wait at barriers. An arrival can let other callers pass, so it must not be repeated before
 * the outcome of the previous one is certain. When this member learns that its session is lost, its arrival still
 * counts until the log ends the session, and by then all callers may have passed. The arrival is therefore withdrawn
 * before it is repeated. After the withdrawal, either the arrival has passed and an event has reported this, or it
 * never will.
 */
import {
  MAX_PERMITS,
  type Operation,
  type SessionId,
  type WaitId,
} from "../../../protocols/service/coordination-service/operations.ts";
import { measure } from "../../../runtime/metrics.ts";
import type { Timer } from "../../../runtime/platform/platform.ts";
import { sleep } from "../../../runtime/platform/sleep.ts";
import type { AcquireOptions } from "../api.ts";
import { type CoordinationCode, CoordinationError } from "../coordination-error.ts";
import { ASK_AGAIN_MS, inWordsOf, isOutcomeUnknown, isPassing, unknownOutcome } from "./refusals.ts";
import type { Done, Service, Told } from "./service.ts";
import type { Waiters } from "./waiters.ts";

/** A barrier and the number of parties it waits for. */
interface Place {
  readonly name: string;
  readonly parties: number;
}

type Arrived = Done<Extract<Operation, { type: "arrive" }>>;

/** How long a caller that gives up waits to learn whether it has passed. */
const LAST_WORD_MS = 250;

export class Arrivals {
  readonly #service: Service;
  readonly #waiters: Waiters;
  /** Pending arrivals, keyed by the number of the wait. */
  readonly #arrivals = new Map<WaitId, Arrival>();

  constructor(service: Service, waiters: Waiters) {
    this.#service = service;
    this.#waiters = waiters;
    service.listen((event) => this.#hear(event));
  }

  /** @returns the number of the round, once all parties have passed */
  async arrive(place: Place, options: AcquireOptions): Promise<number> {
    const [name, what] = [`barrier/${place.name}`, `the barrier "${place.name}"`];
    this.#waiters.requireRoom(name, what, options.signal);
    const { clock, timers } = this.#service.platform;
    const began = clock.now();
    return new Promise((resolve, reject) => {
      const arrival = new Arrival(place, what, {
        passed: (generation) => {
          measure(this.#service.counts.locks.acquiring, clock.now() - began);
          resolve(generation);
        },
        refused: reject,
        over: () => {
          left();
          timers.cancel(arrival.lastWord);
          this.#arrivals.delete(arrival.wait);
        },
      });
      const left = this.#waiters.enter(name, what, options, (why) => this.#giveUp(arrival, why));
      this.#ask(arrival);
    });
  }

  #ask(arrival: Arrival): void {
    arrival.begin(this.#service.number());
    this.#arrivals.set(arrival.wait, arrival);
    this.#submit(arrival);
  }

  #submit(arrival: Arrival): void {
    const { wait, name, parties } = arrival;
    this.#service
      .submit({ type: "arrive", name, wait, parties }, () => this.#isAsked(arrival, wait))
      .then(
        (done) => this.#arrived(arrival, wait, done),
        (error: unknown) => void this.#notAsked(arrival, wait, error),
      );
  }

  /** Whether the arrival is still waiting and is not being withdrawn. */
  #isAsked(arrival: Arrival, wait: WaitId): boolean {
    return this.#arrivals.get(wait) === arrival && !arrival.isTakenBack;
  }

  async #notAsked(arrival: Arrival, wait: WaitId, error: unknown): Promise<void> {
    if (!this.#isAsked(arrival, wait)) return;
    if (!isPassing(error)) return arrival.refuse(inWordsOf(arrival.what, error) as Error);
    await this.#pause();
    if (this.#isAsked(arrival, wait)) this.#submit(arrival);
  }

  #arrived(arrival: Arrival, wait: WaitId, { session, result }: Arrived): void {
    if (this.#arrivals.get(wait) !== arrival) return;
    const generation = result.type === "passed" ? result.generation : arrival.passedIn(session);
    if (generation !== undefined) return arrival.pass(generation);
    arrival.session = session;
    if (session !== this.#service.session) this.#beginAnew(arrival);
    else if (arrival.gaps > 0) void this.#find(arrival);
  }

  #hear(event: Told): void {
    if (event.type === "passed") {
      for (const { session, wait } of event.arrivals) {
        const arrival = this.#arrivals.get(wait);
        if (arrival?.name === event.name) arrival.hearOf(session, event.generation);
      }
    } else if (event.type === "lost" || event.type === "ended") {
      for (const arrival of [...this.#arrivals.values()])
        if (arrival.session === event.session) this.#beginAnew(arrival);
    } else if (event.type === "restored") {
      for (const arrival of this.#arrivals.values()) {
        arrival.gaps += 1;
        if (arrival.session !== null) void this.#find(arrival);
      }
    } else if (event.type === "closed") {
      const { code, message } = event.reason;
      for (const arrival of [...this.#arrivals.values()]) arrival.refuse(mayCount(code, message, event.reason));
    }
  }

  /** Queries the log for the outcome, because events may have been missed. */
  async #find(arrival: Arrival): Promise<void> {
    const { name, wait, session, gaps } = arrival;
    const isLooked = (): boolean =>
      this.#isAsked(arrival, wait) && arrival.session === session && arrival.gaps === gaps;
    while (isLooked()) {
      try {
        const number = await this.#freshNumber(name, isLooked);
        if (!isLooked()) return;
        const asked = { type: "arrival", name, session: session as SessionId, wait } as const;
        const { answer } = await this.#service.query(asked);
        if (!isLooked()) return;
        if (answer.state === "waiting") arrival.gaps = 0;
        else if (answer.state === "passed") arrival.pass(number);
        else arrival.refuse(outcomeUnknown(arrival.what, null));
        return;
      } catch {
        // The log is overloaded, the session has ended, or the service is closed and no call is waiting.
        await this.#pause();
      }
    }
  }

  /**
   * Returns a number that is higher than the numbers of all earlier rounds, and that no other caller gets. It is used
   * if the number of the round itself is no longer known. The number is a log token. A member that has answered this
   * request in a client's session sends the client all its events from then on.
   */
  async #freshNumber(barrier: string, isWanted: () => boolean): Promise<number> {
    const place = { name: `arrival/${barrier}`, wait: this.#service.number() };
    const asked = { type: "acquire", ...place, mode: "shared", permits: 1, capacity: MAX_PERMITS, note: "" } as const;
    const { result } = await this.#service.submit(asked, isWanted);
    // This rejects only once the service is closed.
    this.#untilDone(() => this.#service.submit({ type: "withdraw", ...place }, () => true)).catch(() => {});
    if (result.type === "granted") return result.token;
    throw new Error("a barrier granted no token although it has enough for all callers");
  }

  /**
   * Called when the arrival's session has ended, or when its caller gives up. Withdraws the arrival. If the caller is
   * still waiting, it then arrives again in the next session.
   */
  #beginAnew(arrival: Arrival): void {
    if (!arrival.isTakenBack) void this.#takeBack(arrival);
  }

  #giveUp(arrival: Arrival, why: CoordinationError): void {
    if (arrival.isOver || arrival.givenUp !== null) return;
    arrival.givenUp = why;
    const isLate = (): void => arrival.refuse(mayCount(why.code, why.message, why.cause));
    arrival.lastWord = this.#service.platform.timers.after(LAST_WORD_MS, isLate);
    this.#beginAnew(arrival);
  }

  async #takeBack(arrival: Arrival): Promise<void> {
    const { name, wait } = arrival;
    arrival.isTakenBack = true;
    try {
      await this.#untilDone(() => this.#service.submit({ type: "leave", name, wait }, () => true));
    } catch (error) {
      return arrival.refuse(inWordsOf(arrival.what, error) as Error);
    }
    if (this.#arrivals.get(wait) !== arrival) return; // It has passed, or the caller no longer waits for the answer.
    const { givenUp } = arrival;
    if (arrival.gaps > 0) arrival.refuse(outcomeUnknown(arrival.what, givenUp));
    else if (givenUp !== null) arrival.refuse(givenUp);
    else {
      this.#arrivals.delete(wait);
      this.#ask(arrival);
    }
  }

  /** @throws CoordinationError once the service is closed */
  async #untilDone(work: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        return void (await work());
      } catch (error) {
        if (!isPassing(error) && !isOutcomeUnknown(error)) throw error;
      }
      await this.#pause();
    }
  }

  #pause(): Promise<void> {
    return sleep(this.#service.platform.timers, ASK_AGAIN_MS, { ref: false });
  }
}

interface End {
  passed(generation: number): void;
  refused(error: Error): void;
  over(): void;
}

/** One call to `arrive()`. */
class Arrival {
  readonly name: string;
  readonly parties: number;
  /** The number of the wait, which is different in each session. */
  wait: WaitId = 0;
  /** The session of this arrival in the log. Null if unknown. */
  session: SessionId | null = null;
  isTakenBack = false;
  /** How many times events may have been missed since this arrival's state was last known. */
  gaps = 0;
  givenUp: CoordinationError | null = null;
  lastWord: Timer | null = null;
  isOver = false;
  readonly #end: End;
  /** Rounds that were reported before this arrival's session was known, keyed by session. */
  readonly #passed = new Map<SessionId, number>();

  constructor(
    { name, parties }: Place,
    readonly what: string,
    end: End,
  ) {
    this.name = name;
    this.parties = parties;
    this.#end = end;
  }

  begin(wait: WaitId): void {
    this.wait = wait;
    this.session = null;
    this.isTakenBack = false;
    this.gaps = 0;
    this.#passed.clear();
  }

  passedIn(session: SessionId): number | undefined {
    return this.#passed.get(session);
  }

  /**
   * Called when all parties have passed, including an arrival with this number in the given session. Sessions of other
   * members may use the same number.
   */
  hearOf(session: SessionId, generation: number): void {
    if (this.session === null) this.#passed.set(session, generation);
    else if (this.session === session) this.pass(generation);
  }

  pass(generation: number): void {
    if (this.#isLast()) this.#end.passed(generation);
  }

  refuse(error: Error): void {
    if (this.#isLast()) this.#end.refused(error);
  }

  #isLast(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.#end.over();
    return true;
  }
}

const mayCount = (code: CoordinationCode, message: string, cause: unknown): CoordinationError =>
  new CoordinationError(
    code,
    "uncertain",
    `${message}; but the arrival may have been counted, so other callers may pass`,
    cause === undefined ? {} : { cause },
  );

function outcomeUnknown(what: string, givenUp: CoordinationError | null): Error {
  if (givenUp !== null) return mayCount(givenUp.code, givenUp.message, givenUp.cause);
  return inWordsOf(what, unknownOutcome()) as Error;
}
