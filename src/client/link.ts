/**
 * A client's way to the members: one connection, to whichever of them answers first. When it breaks, or nobody answers on it, the next
 * member is tried, and soon another beside it, since nothing answers from a machine that is gone; what is to be said again there is for
 * others to know.
 */

import {
  CLIENT_VERSION,
  type ClientWord,
  MAX_WORD_CHARS,
  type MemberWord,
  memberWordShape,
  type Role,
  readWord,
} from "../cluster/clients/client-words.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Platform, Timer } from "../runtime/platform/platform.ts";
import { Refusals } from "./refusals.ts";

export interface Connection {
  send(text: string): void;
  close(): void;
}

export interface Ear {
  opened(): void;
  heard(text: string): void;
  /** Once, and nothing after it. @param reason as a clause, where the platform says one. */
  closed(reason?: string): void;
}

/** Begins to connect; tells nothing before it has returned. */
export type Dial = (endpoint: string, ear: Ear) => Connection;

export interface LinkOptions {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  /** At which it begins. */
  readonly endpoints: readonly string[];
  readonly token: string | null;
  readonly dial: Dial;
  /** A member takes this client. `isFirst`: none has before. */
  onWelcome(welcome: MemberWord & { type: "welcome" }, isFirst: boolean): void;
  onWord(word: MemberWord): void;
  onLost(): void;
  /** No member would take this client. */
  onRefused(error: CoordinationError): void;
}

/** How long a member may take to say welcome. */
const WELCOME_MS = 2_000;
/** One that has not said it after so long is not waited for alone: the time that RFC 8305 §5 recommends. */
const BESIDE_MS = 250;
/** How often it is asked whether it is there, and how long it may take to answer: a session lasts longer. */
const PING_EVERY_MS = 250;
const SILENCE_MS = 750;
/** After all have been tried in vain. */
const MIN_WAIT_MS = 50;
const MAX_WAIT_MS = 1_000;

/** A connection that is not welcome yet, or that which is. */
interface Attempt {
  readonly endpoint: string;
  readonly connection: Connection;
  readonly deadline: Timer;
  isOpen: boolean;
}

export class Link {
  role: Role | null = null;
  /** Whom it speaks to; null while to nobody. */
  member: NodeId | null = null;
  endpoint: string | null = null;
  /** How often another connection took the place of one. */
  moves = 0;
  /** All that it tries, in turn. */
  endpoints: readonly string[];
  readonly #options: LinkOptions;
  /** Since it was last welcome. */
  readonly #refusals = new Refusals();
  #client: NodeId | null = null;
  #next: number;
  #tries = 0;
  /** Those that have not been answered. */
  readonly #attempts = new Set<Attempt>();
  /** A member has welcomed it there. */
  #current: Attempt | null = null;
  #isClosed = false;
  #wasWelcome = false;
  /** Of the next attempt. */
  #timer: Timer | null = null;
  #pings: Timer | null = null;
  #pinged = 0;
  #heard = 0;
  #ping = 0;
  /** Of a word that is not whole yet. */
  #fragments = "";

  constructor(options: LinkOptions) {
    this.#options = options;
    this.endpoints = options.endpoints;
    this.#next = Math.floor(options.platform.random.fraction() * options.endpoints.length);
  }

  get isUp(): boolean {
    return this.#current !== null;
  }

  /** Why no member takes this client, as a clause. */
  get why(): string {
    const awaited = [...this.#attempts].map(({ endpoint }) => endpoint);
    return this.#refusals.inWords(this.endpoints, awaited);
  }

  /** Where members are, beside those that it was given. */
  learn(told: readonly string[]): void {
    this.endpoints = [...new Set([...this.#options.endpoints, ...told])];
    this.#next = this.endpoints.indexOf(this.endpoint ?? "") + 1;
  }

  open(): void {
    if (this.#isClosed || this.isUp) return;
    const { length } = this.endpoints;
    const tried = new Set([...this.#attempts].map(({ endpoint }) => endpoint));
    const inTurn = this.endpoints.map((_, at) => this.endpoints[(this.#next + at) % length] as string);
    const endpoint = inTurn.find((each) => !tried.has(each));
    if (endpoint === undefined) return; // What ends first is followed by another.
    this.#next = this.endpoints.indexOf(endpoint) + 1;
    this.#tries += 1;
    const isUnderWay = this.#tryAt(endpoint);
    this.#openIn(Math.max(isUnderWay ? BESIDE_MS : 0, this.#waitMs()));
  }

  /** What cannot be said now is lost. */
  say(word: ClientWord): void {
    this.#current?.connection.send(JSON.stringify(word));
  }

  /** The next connection is of a client that none has seen. */
  beginAnew(): void {
    this.#client = null;
    if (this.#current !== null) this.#lose(this.#current, "the log has forgotten this client");
  }

  close(): void {
    this.#isClosed = true;
    this.#options.platform.timers.cancel(this.#timer);
    this.#drop();
    this.#giveUpAttempts();
  }

  #openIn(ms: number): void {
    const { timers } = this.#options.platform;
    timers.cancel(this.#timer);
    this.#timer = timers.after(ms, () => this.open());
  }

  /** @returns whether a connection may come of it */
  #tryAt(endpoint: string): boolean {
    const { platform } = this.#options;
    const isAwaited = (): boolean => this.#attempts.has(attempt);
    const connection = this.#dial(endpoint, {
      opened: () => isAwaited() && this.#greet(attempt),
      heard: (text) => {
        if (this.#current === attempt) this.#hear(attempt, text);
        else if (isAwaited()) this.#hearFirst(attempt, text);
      },
      closed: (reason = attempt.isOpen ? "the connection was closed" : "no connection came about") =>
        this.#lose(attempt, reason),
    });
    if (connection === null) return false;
    const attempt: Attempt = {
      endpoint,
      connection,
      deadline: platform.timers.after(WELCOME_MS, () => this.#lose(attempt, `no answer within ${WELCOME_MS} ms`)),
      isOpen: false,
    };
    this.#attempts.add(attempt);
    return true;
  }

  /** A platform may refuse to connect there at all, as browsers do for some ports: then there are other endpoints. */
  #dial(endpoint: string, ear: Ear): Connection | null {
    try {
      return this.#options.dial(endpoint, ear);
    } catch (error) {
      this.#refusals.note(endpoint, (error as Error).message, false);
      return null;
    }
  }

  #greet(attempt: Attempt): void {
    const { token } = this.#options;
    attempt.isOpen = true;
    attempt.connection.send(
      JSON.stringify({
        type: "hello",
        version: CLIENT_VERSION,
        client: this.#client,
        token,
      } satisfies ClientWord),
    );
  }

  /** The first to say welcome is spoken to. */
  #hearFirst(attempt: Attempt, text: string): void {
    const read = readWord(memberWordShape, text);
    if ("fault" in read) return this.#lose(attempt, noMember(read.fault));
    const { word } = read;
    if (word.type === "welcome") this.#enter(attempt, word);
    else if (word.type === "farewell") this.#dismissed(attempt, word);
  }

  #hear(attempt: Attempt, text: string): void {
    this.#heard = this.#ping;
    const read = readWord(memberWordShape, text);
    if ("fault" in read) return this.#lose(attempt, noMember(read.fault));
    const { word } = read;
    if (word.type === "fragment") return this.#putTogether(attempt, word);
    if (word.type === "farewell") return this.#dismissed(attempt, word);
    if (word.type !== "pong") this.#options.onWord(word);
  }

  #putTogether(attempt: Attempt, { isLast, text }: MemberWord & { type: "fragment" }): void {
    const whole = this.#fragments + text;
    this.#fragments = isLast ? "" : whole;
    if (whole.length > MAX_WORD_CHARS)
      this.#lose(attempt, noMember(`expected at most ${MAX_WORD_CHARS} characters, got ${whole.length}`));
    else if (isLast) this.#hear(attempt, whole);
  }

  #enter(attempt: Attempt, word: MemberWord & { type: "welcome" }): void {
    const { timers } = this.#options.platform;
    timers.cancel(this.#timer);
    this.#endAttempt(attempt);
    this.#giveUpAttempts();
    this.#current = attempt;
    this.endpoint = attempt.endpoint;
    this.#refusals.clear();
    this.#tries = 0;
    this.#client = word.role === "read" ? null : word.client;
    this.role = word.role;
    this.member = word.member;
    const isFirst = !this.#wasWelcome;
    if (!isFirst) this.moves += 1;
    this.#wasWelcome = true;
    this.#pings = timers.every(PING_EVERY_MS, () => this.#askWhetherThere(attempt));
    this.#pings.unref();
    this.#options.onWelcome(word, isFirst);
  }

  #askWhetherThere(attempt: Attempt): void {
    const { clock } = this.#options.platform;
    const isAnswered = this.#heard === this.#ping;
    if (!isAnswered) {
      if (clock.now() - this.#pinged >= SILENCE_MS) this.#lose(attempt, `no answer within ${SILENCE_MS} ms`);
      return;
    }
    this.#ping += 1;
    this.#pinged = clock.now();
    this.say({ type: "ping", id: this.#ping });
  }

  #dismissed(attempt: Attempt, { code, reason, isFinal }: MemberWord & { type: "farewell" }): void {
    if (!isFinal) return this.#lose(attempt, reason, true);
    this.close();
    const known = code === "forbidden" ? "forbidden" : "client-refused";
    this.#options.onRefused(
      new CoordinationError(known, "never-sent", `${attempt.endpoint} refuses this client: ${reason}`),
    );
  }

  #lose(attempt: Attempt, reason: string, isSaid = false): void {
    const wasUp = this.#current === attempt;
    if (!wasUp && !this.#endAttempt(attempt)) return; // It is lost already.
    this.#refusals.note(attempt.endpoint, reason, isSaid);
    if (!wasUp) attempt.connection.close();
    else {
      this.#drop();
      this.#options.onLost();
    }
    if (!this.#isClosed) this.#openIn(wasUp ? 0 : this.#waitMs());
  }

  /** The next member at once; once all have been tried, a while that grows. */
  #waitMs(): number {
    const { platform } = this.#options;
    const { length } = this.endpoints;
    if (this.#tries < length) return 0;
    const rounds = Math.floor(this.#tries / length);
    const most = Math.min(MAX_WAIT_MS, MIN_WAIT_MS * 2 ** Math.min(rounds, 10));
    return most * (0.5 + platform.random.fraction() / 2);
  }

  /** @returns whether it was one. */
  #endAttempt(attempt: Attempt): boolean {
    this.#options.platform.timers.cancel(attempt.deadline);
    return this.#attempts.delete(attempt);
  }

  #giveUpAttempts(): void {
    for (const attempt of [...this.#attempts]) {
      this.#endAttempt(attempt);
      attempt.connection.close();
    }
  }

  /** The connection that there is. */
  #drop(): void {
    const { timers } = this.#options.platform;
    timers.cancel(this.#pings);
    this.#ping = 0;
    this.#heard = 0;
    this.#fragments = "";
    const current = this.#current;
    this.#current = null;
    this.member = null;
    current?.connection.close();
  }
}

/** What speaks there is of another release, or is none. */
const noMember = (fault: string): string => `what answers there does not speak as a member does: ${fault}`;
