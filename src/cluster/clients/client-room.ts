/**
 * Limits the number of client connections at a member. A connection that has not sent `hello` may come from an
 * unauthorized program. It is closed after a short time and never displaces a client. Clients that disappear silently,
 * for example after a power failure, are detected.
 */
import type { ClientCounts } from "../../runtime/metrics.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";

export interface Occupant {
  /** Disconnects the client. The client may reconnect. */
  refuse(code: string, reason: string): void;
  /** Requests a sign of life from the other end. */
  probe(): void;
}

const MAX_CLIENTS = 1_000;
const MAX_STRANGERS = 500;
const GREETING_MS = 3_000;
/**
 * How long a client can be silent before it is probed. A client pings every 250 ms. A page in the background may ping
 * once a minute or not at all, but its browser answers probes.
 */
const PROBE_MS = 4_000;
const SILENCE_MS = 10_000;
const LOOK_EVERY_MS = 1_000;

/** Counts connections and closes the silent ones. */
export class ClientRoom {
  readonly #platform: Pick<Platform, "clock" | "timers">;
  readonly #counts: Pick<ClientCounts, "connected">;
  /** When each connection without `hello` was opened, in order of arrival. */
  readonly #strangers = new Map<Occupant, number>();
  /** When each client was last active. */
  readonly #heard = new Map<Occupant, number>();
  #timer: Timer | null = null;
  #looked = 0;

  constructor(platform: Pick<Platform, "clock" | "timers">, counts: Pick<ClientCounts, "connected">) {
    this.#platform = platform;
    this.#counts = counts;
  }

  /**
   * Adds a connection. If too many connections have not sent `hello`, the oldest of them is refused, since a client
   * sends `hello` immediately.
   */
  enter(occupant: Occupant): void {
    const [first] = this.#strangers.keys();
    if (first !== undefined && this.#strangers.size >= MAX_STRANGERS)
      first.refuse("no-hello", `expected at most ${MAX_STRANGERS} connections that have not sent a hello`);
    this.#strangers.set(occupant, this.#platform.clock.now());
    if (this.#timer !== null) return;
    this.#looked = this.#platform.clock.now();
    this.#timer = this.#platform.timers.every(LOOK_EVERY_MS, () => this.#look()).unref();
  }

  /**
   * Admits a connection that has sent `hello` and has a role.
   * @returns whether there is room for it
   */
  admit(occupant: Occupant): boolean {
    this.#strangers.delete(occupant);
    if (this.#heard.size >= MAX_CLIENTS) {
      occupant.refuse("too-many-clients", `this member already serves ${MAX_CLIENTS} clients, which is the maximum`);
      return false;
    }
    this.#heard.set(occupant, this.#platform.clock.now());
    this.#counts.connected = this.#heard.size;
    return true;
  }

  /** Records a sign of life. */
  note(occupant: Occupant): void {
    if (this.#heard.has(occupant)) this.#heard.set(occupant, this.#platform.clock.now());
  }

  leave(occupant: Occupant): void {
    this.#strangers.delete(occupant);
    this.#heard.delete(occupant);
    this.#counts.connected = this.#heard.size;
    if (this.#strangers.size + this.#heard.size > 0) return;
    this.#platform.timers.cancel(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    const now = this.#platform.clock.now();
    // After this process has been paused, it may still have unread messages, so restart all timeouts.
    const wasAway = now - this.#looked >= 2 * LOOK_EVERY_MS;
    this.#looked = now;
    if (wasAway) return this.#beginAnew(now);
    for (const [stranger, since] of [...this.#strangers])
      if (now - since >= GREETING_MS) stranger.refuse("no-hello", `expected a hello within ${GREETING_MS} ms`);
    for (const [client, heard] of [...this.#heard]) {
      const silentMs = now - heard;
      if (silentMs >= SILENCE_MS) client.refuse("silent", `received nothing from the client for ${SILENCE_MS} ms`);
      else if (silentMs >= PROBE_MS) client.probe();
    }
  }
  #beginAnew(now: number): void {
    for (const since of [this.#strangers, this.#heard]) for (const occupant of since.keys()) since.set(occupant, now);
  }
}
