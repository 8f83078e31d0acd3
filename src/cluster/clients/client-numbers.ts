/**
 * Numbers for clients that have none yet. The log gives them: one request for some of those that wait is under way at a time, and none
 * begins while nobody is known to lead the log. Otherwise clients that hang up and come again, as they do while there is no majority,
 * would leave more and more commands under way, until this member took none from anybody.
 */
import type { NodeId } from "../../core/protocol.ts";
import { FIRST_CLIENT, OWN_NAMES } from "../../protocols/service/coordination-service/operations.ts";
import type { Timer } from "../../runtime/platform/platform.ts";
import type { ServiceHost } from "../services/state/service-host.ts";

type Log = Pick<ServiceHost, "platform" | "leader" | "why" | "submit">;

export interface Unnumbered {
  welcome(client: NodeId): void;
  /** @param isFinal it would be told the same by other members. */
  dismiss(code: string, reason: string, isFinal: boolean): void;
}

/** Counts those that were given a number. */
const NUMBERS = `${OWN_NAMES}clients`;
/** So many commands of this member are under way for it, at most: they go to the log together. */
const MAX_AT_ONCE = 64;
/** Nobody waits longer. A client that hears nothing for 2 s goes on at another member, and does not know why. */
const MAX_WAIT_MS = 1_500;

export class ClientNumbers {
  readonly #service: Log;
  /** In the order in which they came. */
  readonly #waiting = new Map<Unnumbered, Timer>();
  #isUnderWay = false;

  constructor(service: Log) {
    this.#service = service;
  }

  wait(client: Unnumbered): void {
    const timer = this.#service.platform.timers.after(MAX_WAIT_MS, () => this.#isLate(client));
    this.#waiting.set(client, timer);
    this.ask();
  }

  forget(client: Unnumbered): void {
    this.#service.platform.timers.cancel(this.#waiting.get(client) ?? null);
    this.#waiting.delete(client);
  }

  /** To be called when there may be a leader. */
  ask(): void {
    if (this.#isUnderWay || this.#waiting.size === 0 || this.#service.leader === null) return;
    this.#isUnderWay = true;
    void this.#askFor(Math.min(this.#waiting.size, MAX_AT_ONCE));
  }

  /** Who waits longest is given what comes, though others may have waited when it was asked for. */
  async #askFor(count: number): Promise<void> {
    const add = { type: "add", name: NUMBERS, by: 1 } as const;
    const asked = Array.from({ length: count }, () => this.#service.submit(add, () => this.#waiting.size > 0));
    for (const outcome of await Promise.allSettled(asked)) {
      const client = this.#next();
      if (client === undefined) break;
      if (outcome.status === "fulfilled") client.welcome(FIRST_CLIENT + outcome.value.revision);
      else client.dismiss("unavailable", (outcome.reason as Error).message, false);
    }
    this.#isUnderWay = false;
    this.ask();
  }

  #next(): Unnumbered | undefined {
    const [client] = this.#waiting.keys();
    if (client !== undefined) this.forget(client);
    return client;
  }

  #isLate(client: Unnumbered): void {
    const { why } = this.#service;
    const text = `the log of the cluster has not answered for ${MAX_WAIT_MS} ms`;
    client.dismiss("unavailable", why === "" ? text : `${text}: ${why}`, false);
  }
}
