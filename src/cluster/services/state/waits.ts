/**
 * This process's waits and grants for locks, permits and queue items. Each call is a separate request in the queue
 * under its name, so callers at all members are served in FIFO order. A grant is valid from the first confirmation of
 * the session's lease until the confirmation expires.
 */
import type { Operation, WaitId } from "../../../protocols/service/coordination-service/operations.ts";
import { measure } from "../../../runtime/metrics.ts";
import { sleep } from "../../../runtime/platform/sleep.ts";
import type { AcquireOptions, InstanceStatus } from "../api.ts";
import { type CoordinationCode, CoordinationError } from "../coordination-error.ts";
import type { OwnTenure } from "../tenure.ts";
import { ASK_AGAIN_MS, inWordsOf, isOutcomeUnknown, isPassing } from "./refusals.ts";
import type { Service, Told } from "./service.ts";
import type { Waiters } from "./waiters.ts";

/** A name to wait for, with the operations that request and release it. */
export interface Place<H extends OwnTenure> {
  /** The name in the log. Each kind of object has its own names. */
  readonly name: string;
  /** The name in error messages, such as `the lock "invoice-42"`. */
  readonly what: string;
  /** Returns the request. Repeating it with the same `wait` does not create a second request. */
  ask(wait: WaitId): Operation;
  /** Returns the operation that withdraws the request, or releases a grant made in the meantime. */
  giveUp(wait: WaitId): Operation;
  /**
   * Creates the held object.
   * @param giveBack called once when the grant has ended
   */
  hold(token: number, value: string, giveBack: () => void): H;
}

/** A grant, with the held object. */
export interface Given<H> {
  readonly token: number;
  readonly held: H;
}

/** One call, from its start until its grant ends. */
interface Wanted {
  readonly place: Place<OwnTenure>;
  /** The number of the request, which is different in each session. */
  wait: WaitId;
  given: Given<OwnTenure> | null;
  /** The waiting caller. Null once it is no longer waiting. */
  waiter: { granted(given: Given<OwnTenure>): void; refused(error: CoordinationError): void } | null;
}

/** The state of a lock in this process. */
type Use = Pick<InstanceStatus, "token" | "isHeld" | "waiting">;

const MUTEX = "mutex/";
const ofElection = (name: string): boolean => name.startsWith("election/");

/** This process's grants, and its calls that are waiting for one. */
export class Waits {
  readonly #service: Service;
  readonly #wanted = new Map<WaitId, Wanted>();
  readonly #waiters: Waiters;

  constructor(service: Service, waiters: Waiters) {
    this.#service = service;
    this.#waiters = waiters;
    service.listen((event, until) => this.#hear(event, until));
  }

  /** The number of grants held in this process. */
  get held(): number {
    return [...this.#wanted.values()].filter(({ given }) => given?.held.isHeld === true).length;
  }

  /** Whether this process holds the given name or waits for it. */
  uses(name: string): boolean {
    for (const { place } of this.#wanted.values()) if (place.name === name) return true;
    return false;
  }

  /** The locks that this process holds or waits for, by name. */
  get locks(): ReadonlyMap<string, Use> {
    const locks = new Map<string, Use>();
    for (const { place, given, waiter } of this.#wanted.values()) {
      if (!place.name.startsWith(MUTEX)) continue;
      const name = place.name.slice(MUTEX.length);
      const use = locks.get(name) ?? { token: null, isHeld: false, waiting: 0 };
      const isHeld = waiter === null && given?.held.isHeld === true;
      if (waiter !== null) locks.set(name, { ...use, waiting: use.waiting + 1 });
      else locks.set(name, isHeld ? { ...use, isHeld, token: given?.token ?? null } : use);
    }
    return locks;
  }

  async wait<H extends OwnTenure>(place: Place<H>, options: AcquireOptions): Promise<Given<H>> {
    this.#waiters.requireRoom(place.name, place.what, options.signal);
    return (await this.#waitAt(place, options)) as Given<H>;
  }

  /** Called when a grant has ended without being released. */
  forget(held: OwnTenure): void {
    for (const [wait, { given }] of this.#wanted) if (given?.held === held) this.#wanted.delete(wait);
  }

  #waitAt(place: Wanted["place"], options: AcquireOptions): Promise<Given<OwnTenure>> {
    const { platform, counts } = this.#service;
    const { clock } = platform;
    const began = clock.now();
    return new Promise((resolve, reject) => {
      const wanted: Wanted = { place, wait: 0, given: null, waiter: null };
      const done = (): void => {
        left();
        wanted.waiter = null;
      };
      // The caller continues after this turn, which may be long or end the session. Until then, the call counts as
      // waiting.
      const look = (given: Given<OwnTenure>): void => {
        if (wanted.waiter === null || wanted.given !== given) return;
        if (!given.held.isHeld) return this.#askAnew(wanted);
        done();
        measure(counts.locks.acquiring, clock.now() - began);
        resolve(given);
      };
      wanted.waiter = {
        granted: (given) => queueMicrotask(() => look(given)),
        refused(error) {
          done();
          reject(error);
        },
      };
      const left = this.#waiters.enter(place.name, place.what, options, (why) => {
        wanted.waiter?.refused(why);
        this.#giveBack(wanted, wanted.wait);
        wanted.given?.held.end(why);
      });
      this.#ask(wanted);
    });
  }

  #ask(wanted: Wanted): void {
    wanted.wait = this.#service.number();
    this.#wanted.set(wanted.wait, wanted);
    this.#submit(wanted);
  }

  #askAnew(wanted: Wanted): void {
    wanted.given = null;
    this.#ask(wanted);
  }

  #submit(wanted: Wanted): void {
    const { wait, place } = wanted;
    const isWanted = (): boolean => this.#wanted.get(wait) === wanted;
    this.#service.submit(place.ask(wait), isWanted).then(
      ({ result }) => {
        if (wanted.wait !== wait) return this.#insist(place.giveUp(wait)); // It was requested again in a new session.
        if (result.type === "granted") this.#give(wait, result.token, "");
        else if (result.type === "item") this.#give(wait, result.token, result.value);
      },
      (error: unknown) => void this.#notAsked(wanted, wait, error),
    );
  }

  async #notAsked(wanted: Wanted, wait: WaitId, error: unknown): Promise<void> {
    const { place } = wanted;
    if (wanted.wait !== wait || wanted.given !== null || wanted.waiter === null) return;
    if (isOutcomeUnknown(error)) {
      this.#giveBack(wanted, wait); // The request may be in the queue.
      return this.#askAnew(wanted);
    }
    if (!isPassing(error)) {
      this.#wanted.delete(wait);
      return wanted.waiter.refused(inWordsOf(place.what, error) as CoordinationError);
    }
    await sleep(this.#service.platform.timers, ASK_AGAIN_MS, { ref: false });
    if (this.#wanted.get(wait) === wanted && wanted.given === null) this.#submit(wanted);
  }

  #hear(event: Told, until: number | null): void {
    if (event.type === "closed") return this.#close(event.reason);
    if (event.type === "restored") return this.#askAgain();
    if (!("session" in event) || !this.#service.isOwn(event.session)) return;
    const isOfThisRun = this.#service.isOfThisRun(event.session);
    if (event.type === "granted") {
      if (ofElection(event.name)) return;
      if (this.#wanted.has(event.wait)) this.#give(event.wait, event.token, "");
      // The grant is no longer wanted.
      else if (isOfThisRun) this.#insist({ type: "withdraw", name: event.name, wait: event.wait });
    } else if (event.type === "item") {
      if (this.#wanted.has(event.wait)) this.#give(event.wait, event.token, event.value);
      else if (isOfThisRun) this.#insist({ type: "stopTaking", name: event.name, wait: event.wait });
    } else if (event.type === "confirmed") this.#confirm(until);
    else if (event.type === "lost") this.#lose(event.why);
  }

  #give(wait: WaitId, token: number, value: string): void {
    const wanted = this.#wanted.get(wait);
    if (wanted === undefined || wanted.given !== null) return; // The request was withdrawn or has already been granted.
    const held = wanted.place.hold(token, value, () => this.#giveBack(wanted, wait));
    wanted.given = { token, held };
    const { until, platform } = this.#service;
    // Without a valid confirmation, the grant is handed over at the next confirmation.
    if (until !== null && until > platform.clock.now()) this.#handOver(wanted, until);
  }

  #confirm(until: number | null): void {
    for (const wanted of [...this.#wanted.values()]) if (wanted.given !== null) this.#handOver(wanted, until);
  }

  #handOver(wanted: Wanted, until: number | null): void {
    const { given, waiter } = wanted;
    if (given === null) return;
    given.held.confirm(until);
    if (given.held.isHeld) return waiter?.granted(given);
    if (waiter !== null) this.#askAnew(wanted); // The grant expired while this process was paused.
  }

  /**
   * Handles the end of the session, which ends all its grants and requests. Calls that are still waiting make a new
   * request in the next session, behind all other callers.
   */
  #lose(why: string | undefined): void {
    for (const [wait, wanted] of [...this.#wanted]) {
      this.#wanted.delete(wait);
      const { given, waiter, place } = wanted;
      wanted.given = null;
      // Requests that have not been sent go to the log in the next session.
      if (waiter !== null) this.#insist(place.giveUp(wait));
      given?.held.lose(why);
      if (waiter !== null) this.#ask(wanted);
    }
  }

  /**
   * Repeats all requests after a snapshot replaced part of the log, since grants may have been missed. The answer to a
   * repeated request reports its current state.
   */
  #askAgain(): void {
    for (const wanted of this.#wanted.values()) if (wanted.given === null) this.#submit(wanted);
  }

  #close(reason: CoordinationError): void {
    for (const { waiter, given } of [...this.#wanted.values()]) {
      waiter?.refused(never(reason.code, reason.message));
      given?.held.end(reason);
    }
    this.#wanted.clear();
  }

  #giveBack({ place }: Wanted, wait: WaitId): void {
    if (this.#wanted.delete(wait)) this.#insist(place.giveUp(wait));
  }

  #insist(operation: Operation): void {
    const { session } = this.#service;
    this.#service
      .submit(operation, () => session === this.#service.session)
      .catch(async (error: unknown) => {
        if (!isPassing(error)) return;
        await sleep(this.#service.platform.timers, ASK_AGAIN_MS, { ref: false });
        if (session === this.#service.session && this.#service.closed === null) this.#insist(operation);
      });
  }
}

const never = (code: CoordinationCode, message: string): CoordinationError =>
  new CoordinationError(code, "never-acquired", message);
