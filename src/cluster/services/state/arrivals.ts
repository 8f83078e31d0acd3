/**
 * Who waits at barriers here. Others go on by an arrival, so it is not made anew before it is certain what became of the last one: that of a
 * session that is over counts until the log has ended that session, and all may have passed by then. So it is taken back first.
 * When that is done, it has passed before, which has been told, or it never will.
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

/** So many meet there. */
interface Place {
  readonly name: string;
  readonly parties: number;
}

type Arrived = Done<Extract<Operation, { type: "arrive" }>>;

/** Who gives up waits for so long at most to be told whether it has passed before. */
const LAST_WORD_MS = 250;

export class Arrivals {
  readonly #service: Service;
  readonly #waiters: Waiters;
  /** Those that are not over. */
  readonly #arrivals = new Map<WaitId, Arrival>();

  constructor(service: Service, waiters: Waiters) {
    this.#service = service;
    this.#waiters = waiters;
    service.listen((event) => this.#hear(event));
  }

  /** @returns when all have passed */
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

  /** Whether it waits still, and nothing takes it back. */
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

  /** Nothing told what happened meanwhile: so it is looked up. */
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
        await this.#pause(); // Too much is under way, or the session has ended; or the service is closed, and then nobody waits.
      }
    }
  }

  /**
   * Above those of all who have passed, and nobody else's: with which one all have passed, nobody remembers. It is a token of the log. A
   * member that has answered that in a client's session tells the client from then on what concerns it.
   */
  async #freshNumber(barrier: string, isWanted: () => boolean): Promise<number> {
    const place = { name: `arrival/${barrier}`, wait: this.#service.number() };
    const asked = { type: "acquire", ...place, mode: "shared", permits: 1, capacity: MAX_PERMITS, note: "" } as const;
    const { result } = await this.#service.submit(asked, isWanted);
    this.#untilDone(() => this.#service.submit({ type: "withdraw", ...place }, () => true)).catch(() => {}); // The service is closed.
    if (result.type === "granted") return result.token;
    throw new Error("a token of which there are enough for all was not given");
  }

  /** Its session is over: who still waits arrives in the next one. */
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
    if (this.#arrivals.get(wait) !== arrival) return; // It has passed, or nobody has waited for the answer any more.
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

/** One call, from its first word to its end. */
class Arrival {
  readonly name: string;
  readonly parties: number;
  /** Another one in each session. */
  wait: WaitId = 0;
  /** In which it stands in the log; null: whether it does is not known. */
  session: SessionId | null = null;
  isTakenBack = false;
  /** How often nothing told what had happened meanwhile, since that was last known. */
  gaps = 0;
  givenUp: CoordinationError | null = null;
  lastWord: Timer | null = null;
  isOver = false;
  readonly #end: End;
  /** What was told while its session was not known. */
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

  /** All have passed, with this one as it arrived in that session, which may be another member's with the same number. */
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
    `${message}; but it may have been counted, and others may pass by it`,
    cause === undefined ? {} : { cause },
  );

function outcomeUnknown(what: string, givenUp: CoordinationError | null): Error {
  if (givenUp !== null) return mayCount(givenUp.code, givenUp.message, givenUp.cause);
  return inWordsOf(what, unknownOutcome()) as Error;
}
