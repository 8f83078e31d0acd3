/**
 * What this process waits for and holds of the service: locks and permits, items of queues, barriers. Each call is a request of its own in
 * the one queue of its name, so callers of all members are served first come, first served. What it is given is certain from
 * the first confirmation of the session's lease on, and for as long as that says.
 */
import type { Operation, WaitId } from "../../../protocols/service/coordination-service/operations.ts";
import { MAX_WAIT_MS } from "../../../runtime/longest-wait.ts";
import { measure } from "../../../runtime/metrics.ts";
import { sleep } from "../../../runtime/platform/sleep.ts";
import type { AcquireOptions, InstanceStatus } from "../api.ts";
import { type CoordinationCode, CoordinationError } from "../coordination-error.ts";
import { onAbort } from "../on-abort.ts";
import type { OwnTenure } from "../tenure.ts";
import { inWordsOf, isPassing } from "./refusals.ts";
import type { Service, Told } from "./service.ts";

/** Where somebody waits, and how it is asked for. */
export interface Place<H extends OwnTenure<number> | null> {
  /** In the log: kinds have names of their own. */
  readonly name: string;
  /** In an error's words, such as `the lock "invoice-42"`. */
  readonly what: string;
  /** The same request asks the same again. */
  ask(wait: WaitId): Operation;
  /** Gives up waiting, or gives back what it was given meanwhile. */
  giveUp(wait: WaitId): Operation;
  /** What is held from now on; null: nothing is. @param giveBack to be called once when it has ended. */
  hold(token: number, value: string, giveBack: () => void): H;
}

/** What somebody was given. */
export interface Given<H> {
  readonly token: number;
  readonly held: H;
}

/** One call, from its first word to the end of what it was given. */
interface Wanted {
  readonly place: Place<OwnTenure<number> | null>;
  /** Another one in each session. */
  wait: WaitId;
  given: Given<OwnTenure<number> | null> | null;
  /** Null once nobody waits any more. */
  waiter: { granted(): void; refused(error: CoordinationError): void } | null;
}

/** How a lock stands here. */
type Use = Pick<InstanceStatus, "token" | "isHeld" | "waiting">;

const MUTEX = "mutex/";
const ofElection = (name: string): boolean => name.startsWith("election/");

/** What was refused only because too much was under way is asked for again. */
const AGAIN_MS = 50;

export class Waits {
  readonly #service: Service;
  readonly #wanted = new Map<WaitId, Wanted>();
  /** By name: how many wait here. */
  readonly #waiting = new Map<string, number>();

  constructor(service: Service) {
    this.#service = service;
    service.listen((event, until) => this.#hear(event, until));
  }

  /** How much is held here. */
  get held(): number {
    return [...this.#wanted.values()].filter(({ given }) => given?.held?.isHeld === true).length;
  }

  get waiting(): number {
    return [...this.#waiting.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Whether anything of that name is waited for or held here. */
  uses(name: string): boolean {
    for (const { place } of this.#wanted.values()) if (place.name === name) return true;
    return false;
  }

  /** Locks that are waited for or held here, by name. */
  get locks(): ReadonlyMap<string, Use> {
    const locks = new Map<string, Use>();
    for (const { place, given, waiter } of this.#wanted.values()) {
      if (!place.name.startsWith(MUTEX)) continue;
      const name = place.name.slice(MUTEX.length);
      const use = locks.get(name) ?? { token: null, isHeld: false, waiting: 0 };
      const isHeld = waiter === null && given?.held?.isHeld === true;
      if (waiter !== null) locks.set(name, { ...use, waiting: use.waiting + 1 });
      else locks.set(name, isHeld ? { ...use, isHeld, token: given?.token ?? null } : use);
    }
    return locks;
  }

  async wait<H extends OwnTenure<number> | null>(
    place: Place<H>,
    { timeoutMs, signal }: AcquireOptions,
  ): Promise<Given<H>> {
    const { maxWaiters, closed } = this.#service;
    if (closed !== null) throw never(closed.code, `${place.what}: ${closed.message}`, closed);
    this.#service.use();
    if (signal?.aborted === true) throw abortedIn(place.what, signal);
    if ((this.#waiting.get(place.name) ?? 0) >= maxWaiters)
      throw never("too-many-waiters", `${maxWaiters} wait for ${place.what} here, and no more may`);
    const given = (await this.#waitAt(place, timeoutMs, signal)) as Given<H>;
    if (given.held === null || given.held.isHeld) return given;
    throw given.held.signal.reason; // Lost between being granted and being looked at.
  }

  /** It has ended in another way than by being given back. */
  forget(held: OwnTenure<number>): void {
    for (const [wait, { given }] of this.#wanted) if (given?.held === held) this.#wanted.delete(wait);
  }

  #waitAt(place: Wanted["place"], timeoutMs: number | undefined, signal: AbortSignal | undefined) {
    const { platform, counts } = this.#service;
    const { clock, timers } = platform;
    const began = clock.now();
    this.#count(place.name, 1);
    return new Promise<Given<OwnTenure<number> | null>>((resolve, reject) => {
      const wanted: Wanted = { place, wait: 0, given: null, waiter: null };
      const done = (): void => {
        timers.cancel(timer);
        forget();
        this.#count(place.name, -1);
        wanted.waiter = null;
      };
      wanted.waiter = {
        granted() {
          done();
          measure(counts.locks.acquiring, clock.now() - began);
          resolve(wanted.given as Given<null>);
        },
        refused(error) {
          done();
          reject(error);
        },
      };
      const giveUp = (error: CoordinationError): void => {
        wanted.waiter?.refused(error);
        this.#giveBack(wanted);
      };
      const forget = onAbort(signal, () => giveUp(abortedIn(place.what, signal as AbortSignal)));
      const timer =
        timeoutMs === undefined || timeoutMs > MAX_WAIT_MS
          ? null
          : timers.after(timeoutMs, () => {
              counts.locks.timedOut += 1;
              giveUp(never("acquire-timeout", `${place.what} was not acquired within ${timeoutMs} ms`));
            });
      this.#ask(wanted);
    });
  }

  #ask(wanted: Wanted): void {
    wanted.wait = this.#service.number();
    this.#wanted.set(wanted.wait, wanted);
    this.#submit(wanted);
  }

  #submit(wanted: Wanted): void {
    const { wait, place } = wanted;
    const isWanted = (): boolean => this.#wanted.get(wait) === wanted;
    this.#service.submit(place.ask(wait), isWanted).then(
      ({ result }) => {
        if (wanted.wait !== wait) return this.#insist(place.giveUp(wait)); // Its session was lost meanwhile: it was asked for anew.
        if (result.type === "granted") this.#give(wait, result.token, "");
        else if (result.type === "item") this.#give(wait, result.token, result.value);
        else if (result.type === "passed") this.#give(wait, result.generation, "");
      },
      (error: unknown) => void this.#notAsked(wanted, wait, error),
    );
  }

  async #notAsked(wanted: Wanted, wait: WaitId, error: unknown): Promise<void> {
    const { place } = wanted;
    if (wanted.wait !== wait || wanted.given !== null || wanted.waiter === null) return;
    if (!isPassing(error)) {
      this.#wanted.delete(wait);
      return wanted.waiter.refused(inWordsOf(place.what, error) as CoordinationError);
    }
    await sleep(this.#service.platform.timers, AGAIN_MS, { ref: false });
    if (this.#wanted.get(wait) === wanted && wanted.given === null) this.#submit(wanted);
  }

  #hear(event: Told, until: number | null): void {
    if (event.type === "closed") return this.#close(event.reason);
    if (event.type === "restored") return this.#askAgain();
    if (event.type === "passed") {
      for (const { session, wait } of event.arrivals)
        if (this.#service.isOwn(session)) this.#give(wait, event.generation, "");
      return;
    }
    if (!("session" in event) || !this.#service.isOwn(event.session)) return;
    const isOfThisRun = this.#service.isOfThisRun(event.session);
    if (event.type === "granted") {
      if (ofElection(event.name)) return;
      if (this.#wanted.has(event.wait)) this.#give(event.wait, event.token, "");
      else if (isOfThisRun) this.#insist({ type: "withdraw", name: event.name, wait: event.wait }); // Nobody waits for it any more.
    } else if (event.type === "item") {
      if (this.#wanted.has(event.wait)) this.#give(event.wait, event.token, event.value);
      else if (isOfThisRun) this.#insist({ type: "stopTaking", name: event.name, wait: event.wait });
    } else if (event.type === "confirmed") this.#confirm(until);
    else if (event.type === "lost") this.#lose();
  }

  #give(wait: WaitId, token: number, value: string): void {
    const wanted = this.#wanted.get(wait);
    if (wanted === undefined || wanted.given !== null) return; // It was withdrawn, or is had already.
    const held = wanted.place.hold(token, value, () => this.#giveBack(wanted));
    wanted.given = { token, held };
    if (held === null) {
      this.#wanted.delete(wait);
      wanted.waiter?.granted();
    } else if (this.#service.until !== null) this.#handOver(wanted, this.#service.until);
  }

  #confirm(until: number | null): void {
    for (const wanted of [...this.#wanted.values()]) if (wanted.given !== null) this.#handOver(wanted, until);
  }

  #handOver(wanted: Wanted, until: number | null): void {
    const { given, waiter } = wanted;
    given?.held?.confirm(until);
    if (given?.held?.isHeld === true) return waiter?.granted();
    if (waiter === null || given?.held?.signal.aborted !== true) return;
    wanted.given = null; // Over before anybody had it, as this process stood still: it is asked for anew.
    this.#ask(wanted);
  }

  /** The session is over, and with it all that it held and waited for. Who still waits does so in the next one, behind all others. */
  #lose(): void {
    for (const [wait, wanted] of [...this.#wanted]) {
      this.#wanted.delete(wait);
      const { given, waiter, place } = wanted;
      wanted.given = null;
      if (waiter !== null) this.#insist(place.giveUp(wait)); // What has not been put to the log yet is put to it in the next session.
      given?.held?.lose();
      if (waiter !== null) this.#ask(wanted);
    }
  }

  /** Where a snapshot took the place of the log, nothing told what was given meanwhile. What is asked for already is answered as it stands. */
  #askAgain(): void {
    for (const wanted of this.#wanted.values()) if (wanted.given === null) this.#submit(wanted);
  }

  #close(reason: CoordinationError): void {
    for (const { waiter, given } of [...this.#wanted.values()]) {
      waiter?.refused(never(reason.code, reason.message));
      given?.held?.end(reason);
    }
    this.#wanted.clear();
  }

  #giveBack({ wait, place }: Wanted): void {
    if (this.#wanted.delete(wait)) this.#insist(place.giveUp(wait));
  }

  #insist(operation: Operation): void {
    const { session } = this.#service;
    this.#service
      .submit(operation, () => session === this.#service.session)
      .catch(async (error: unknown) => {
        if (!isPassing(error)) return;
        await sleep(this.#service.platform.timers, AGAIN_MS, { ref: false });
        if (session === this.#service.session && this.#service.closed === null) this.#insist(operation);
      });
  }

  #count(name: string, by: 1 | -1): void {
    const waiting = (this.#waiting.get(name) ?? 0) + by;
    if (waiting === 0) this.#waiting.delete(name);
    else this.#waiting.set(name, waiting);
  }
}

const never = (code: CoordinationCode, message: string, cause?: unknown): CoordinationError =>
  new CoordinationError(code, "never-acquired", message, cause === undefined ? {} : { cause });

const abortedIn = (what: string, { reason }: AbortSignal): CoordinationError =>
  never("acquire-aborted", `${what} was not acquired: the wait was aborted`, reason);
