/**
 * A client's way to the members: one connection at a time, to whichever of them answers. When it breaks, or nobody answers on it, the
 * next member is tried; what is to be said again there is for others to know.
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

export interface Connection {
  send(text: string): void;
  close(): void;
}

export interface Ear {
  opened(): void;
  heard(text: string): void;
  /** Once, and nothing after it. */
  closed(): void;
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
/** How often it is asked whether it is there, and how long it may take to answer: a session lasts longer. */
const PING_EVERY_MS = 250;
const SILENCE_MS = 750;
/** After all have been tried in vain. */
const MIN_WAIT_MS = 50;
const MAX_WAIT_MS = 1_000;

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
  #client: NodeId | null = null;
  #next: number;
  #tries = 0;
  #connection: Connection | null = null;
  #isClosed = false;
  #wasWelcome = false;
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
    return this.member !== null;
  }

  /** Where members are, beside those that it was given. */
  learn(told: readonly string[]): void {
    this.endpoints = [...new Set([...this.#options.endpoints, ...told])];
    this.#next = this.endpoints.indexOf(this.endpoint ?? "") + 1;
  }

  open(): void {
    if (this.#isClosed) return;
    const { dial, platform } = this.#options;
    const endpoint = this.endpoints[this.#next % this.endpoints.length] as string;
    this.#next += 1;
    this.#tries += 1;
    this.endpoint = endpoint;
    this.#timer = platform.timers.after(WELCOME_MS, () => this.#lose(connection));
    const isCurrent = (): boolean => this.#connection === connection;
    const connection: Connection = dial(endpoint, {
      opened: () => isCurrent() && this.#greet(),
      heard: (text) => isCurrent() && this.#hear(text),
      closed: () => this.#lose(connection),
    });
    this.#connection = connection;
  }

  /** What cannot be said now is lost. */
  say(word: ClientWord): void {
    if (this.member !== null) this.#connection?.send(JSON.stringify(word));
  }

  /** The next connection is of a client that none has seen. */
  beginAnew(): void {
    this.#client = null;
    this.#lose(this.#connection);
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  #greet(): void {
    const { token } = this.#options;
    this.#connection?.send(
      JSON.stringify({
        type: "hello",
        version: CLIENT_VERSION,
        client: this.#client,
        token,
      } satisfies ClientWord),
    );
  }

  #hear(text: string): void {
    this.#heard = this.#ping;
    const read = readWord(memberWordShape, text);
    if ("fault" in read) return this.#lose(this.#connection); // It is of another release, or no member.
    const { word } = read;
    if (word.type === "fragment") return this.#putTogether(word);
    if (word.type === "welcome") return this.#enter(word);
    if (word.type === "farewell") return this.#dismissed(word);
    if (word.type !== "pong" && this.member !== null) this.#options.onWord(word);
  }

  #putTogether({ isLast, text }: MemberWord & { type: "fragment" }): void {
    const whole = this.#fragments + text;
    this.#fragments = isLast ? "" : whole;
    if (whole.length > MAX_WORD_CHARS) this.#lose(this.#connection);
    else if (isLast) this.#hear(whole);
  }

  #enter(word: MemberWord & { type: "welcome" }): void {
    const { timers } = this.#options.platform;
    timers.cancel(this.#timer);
    this.#tries = 0;
    this.#client = word.role === "read" ? null : word.client;
    this.role = word.role;
    this.member = word.member;
    const isFirst = !this.#wasWelcome;
    if (!isFirst) this.moves += 1;
    this.#wasWelcome = true;
    this.#pings = timers.every(PING_EVERY_MS, () => this.#askWhetherThere());
    this.#pings.unref();
    this.#options.onWelcome(word, isFirst);
  }

  #askWhetherThere(): void {
    const { clock } = this.#options.platform;
    const isAnswered = this.#heard === this.#ping;
    if (!isAnswered) {
      if (clock.now() - this.#pinged >= SILENCE_MS) this.#lose(this.#connection);
      return;
    }
    this.#ping += 1;
    this.#pinged = clock.now();
    this.say({ type: "ping", id: this.#ping });
  }

  #dismissed({ code, reason, isFinal }: MemberWord & { type: "farewell" }): void {
    if (!isFinal) return this.#lose(this.#connection);
    this.close();
    const known = code === "forbidden" ? "forbidden" : "client-refused";
    this.#options.onRefused(
      new CoordinationError(known, "never-sent", `${this.endpoint} refuses this client: ${reason}`),
    );
  }

  #lose(connection: Connection | null): void {
    if (this.#isClosed || connection === null || this.#connection !== connection) return;
    const wasUp = this.isUp;
    this.#drop();
    if (wasUp) this.#options.onLost();
    this.#timer = this.#options.platform.timers.after(this.#waitMs(wasUp), () => this.open());
  }

  /** The next member at once; once all have been tried, a while that grows. */
  #waitMs(wasUp: boolean): number {
    const { platform } = this.#options;
    const { length } = this.endpoints;
    if (wasUp || this.#tries < length) return 0;
    const rounds = Math.floor(this.#tries / length);
    const most = Math.min(MAX_WAIT_MS, MIN_WAIT_MS * 2 ** Math.min(rounds, 10));
    return most * (0.5 + platform.random.fraction() / 2);
  }

  #drop(): void {
    const { timers } = this.#options.platform;
    timers.cancel(this.#timer);
    timers.cancel(this.#pings);
    this.#ping = 0;
    this.#heard = 0;
    this.#fragments = "";
    const connection = this.#connection;
    this.#connection = null;
    this.member = null;
    connection?.close();
  }
}
