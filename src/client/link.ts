/**
 * A client's connection to the members. It uses the member that answers first. When the connection breaks or goes
 * silent, the link tries the next member, and soon afterwards another one in parallel, since a crashed machine never
 * answers. Callers repeat lost messages themselves.
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

/** An open WebSocket, or an attempt to open one. */
export interface Connection {
  send(text: string): void;
  close(): void;
}

/** Receives a connection's events. */
export interface Ear {
  opened(): void;
  heard(text: string): void;
  /**
   * Called once, as the last callback.
   * @param reason a clause, if the platform gives a reason
   */
  closed(reason?: string): void;
}

/** Starts to connect. It must not call `ear` before it has returned. */
export type Dial = (endpoint: string, ear: Ear) => Connection;

export interface LinkOptions {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  /** The endpoints to try first. */
  readonly endpoints: readonly string[];
  readonly token: string | null;
  readonly dial: Dial;
  /** Called when a member accepts this client. `isFirst` is true the first time. */
  onWelcome(welcome: MemberWord & { type: "welcome" }, isFirst: boolean): void;
  onWord(word: MemberWord): void;
  onLost(): void;
  /** Called when the cluster refuses this client, which means that every member would. */
  onRefused(error: CoordinationError): void;
}

/** The maximum time for a member to send `welcome`. */
const WELCOME_MS = 2_000;
/** After this time without a `welcome`, the link tries another member in parallel, as RFC 8305 §5 recommends. */
const BESIDE_MS = 250;
/** The interval between pings, and how long a member can be silent. Sessions last longer. */
const PING_EVERY_MS = 250;
const SILENCE_MS = 750;
/** The delay after every endpoint has failed. */
const MIN_WAIT_MS = 50;
const MAX_WAIT_MS = 1_000;

/** A connection, before or after its `welcome`. */
interface Attempt {
  readonly endpoint: string;
  readonly connection: Connection;
  readonly deadline: Timer;
  isOpen: boolean;
}

/** The client's connection, which moves to a different member when it breaks. */
export class Link {
  role: Role | null = null;
  /** The member at the other end. Null if the client is not connected. */
  member: NodeId | null = null;
  endpoint: string | null = null;
  /** How many times the client has reconnected. */
  moves = 0;
  /** All endpoints to try, in this order. */
  endpoints: readonly string[];
  readonly #options: LinkOptions;
  /** The refusals since the last `welcome`. */
  readonly #refusals = new Refusals();
  #client: NodeId | null = null;
  #next: number;
  #tries = 0;
  /** Connections that are waiting for `welcome`. */
  readonly #attempts = new Set<Attempt>();
  /** The connection in use. Its member has sent `welcome`. */
  #current: Attempt | null = null;
  #isClosed = false;
  #wasWelcome = false;
  /** The timer that starts the next attempt. */
  #timer: Timer | null = null;
  #pings: Timer | null = null;
  #pinged = 0;
  #heard = 0;
  #ping = 0;
  /** The fragments received so far of an incomplete message. */
  #fragments = "";

  constructor(options: LinkOptions) {
    this.#options = options;
    this.endpoints = options.endpoints;
    this.#next = Math.floor(options.platform.random.fraction() * options.endpoints.length);
  }

  get isUp(): boolean {
    return this.#current !== null;
  }

  /** Why no member accepts this client, as a clause. */
  get why(): string {
    const awaited = [...this.#attempts].map(({ endpoint }) => endpoint);
    return this.#refusals.inWords(this.endpoints, awaited);
  }

  /** Adds members' endpoints to those passed to `connect()`. */
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
    if (endpoint === undefined) return; // When an attempt ends, the next one begins.
    this.#next = this.endpoints.indexOf(endpoint) + 1;
    this.#tries += 1;
    const isUnderWay = this.#tryAt(endpoint);
    this.#openIn(Math.max(isUnderWay ? BESIDE_MS : 0, this.#waitMs()));
  }

  /** Sends a message. If the client is not connected, the message is dropped. */
  say(word: ClientWord): void {
    this.#current?.connection.send(JSON.stringify(word));
  }

  /**
   * Drops the client's id. Called when the log has garbage-collected this client. The next connection gets a new id.
   */
  beginAnew(): void {
    this.#client = null;
    if (this.#current !== null) this.#lose(this.#current, "the log no longer knows this client");
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

  /** @returns whether the attempt has started */
  #tryAt(endpoint: string): boolean {
    const { platform } = this.#options;
    const isAwaited = (): boolean => this.#attempts.has(attempt);
    const connection = this.#dial(endpoint, {
      opened: () => isAwaited() && this.#greet(attempt),
      heard: (text) => {
        if (this.#current === attempt) this.#hear(attempt, text);
        else if (isAwaited()) this.#hearFirst(attempt, text);
      },
      closed: (reason = attempt.isOpen ? "the connection was closed" : "no connection was established") =>
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

  /**
   * Dials an endpoint. A platform may refuse an endpoint immediately, as browsers do for some ports. The link then
   * tries the others.
   */
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

  /** Handles the first message on an attempted connection. The link uses the first member that sends `welcome`. */
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
      new CoordinationError(known, "never-sent", `${attempt.endpoint} rejects this client: ${reason}`),
    );
  }

  #lose(attempt: Attempt, reason: string, isSaid = false): void {
    const wasUp = this.#current === attempt;
    if (!wasUp && !this.#endAttempt(attempt)) return; // The connection is already closed.
    this.#refusals.note(attempt.endpoint, reason, isSaid);
    if (!wasUp) attempt.connection.close();
    else {
      this.#drop();
      this.#options.onLost();
    }
    if (!this.#isClosed) this.#openIn(wasUp ? 0 : this.#waitMs());
  }

  /**
   * Returns the delay before the next attempt. It is 0 until every endpoint has been tried. After that, the delay
   * increases with each round.
   */
  #waitMs(): number {
    const { platform } = this.#options;
    const { length } = this.endpoints;
    if (this.#tries < length) return 0;
    const rounds = Math.floor(this.#tries / length);
    const most = Math.min(MAX_WAIT_MS, MIN_WAIT_MS * 2 ** Math.min(rounds, 10));
    return most * (0.5 + platform.random.fraction() / 2);
  }

  /** @returns whether the attempt was still pending */
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

/** Returns the reason to give if an endpoint's server is a different release, or is not a member at all. */
const noMember = (fault: string): string => `the server does not follow the client protocol: ${fault}`;
