/**
 * Assigns ids to new clients, through the log. Only one batch of commands is pending at a time, and no batch starts
 * unless a leader is known. Otherwise, clients that reconnect repeatedly, as they do without a majority, would exhaust
 * this member's limit on pending commands and block all other commands.
 */
import type { NodeId } from "../../core/protocol.ts";
import { FIRST_CLIENT, OWN_NAMES } from "../../protocols/service/coordination-service/operations.ts";
import type { Timer } from "../../runtime/platform/platform.ts";
import type { ServiceHost } from "../services/state/service-host.ts";

type Log = Pick<ServiceHost, "platform" | "leader" | "why" | "submit">;

/** A client's connection that has no id yet. */
export interface Unnumbered {
  welcome(client: NodeId): void;
  /**
   * Disconnects the client.
   * @param isFinal whether other members would refuse the client too
   */
  dismiss(code: string, reason: string, isFinal: boolean): void;
}

/** The counter of assigned ids. */
const NUMBERS = `${OWN_NAMES}clients`;
/** The maximum number of commands in a batch, which the log appends together. */
const MAX_AT_ONCE = 64;
/** The maximum wait. A client that receives nothing for 2 s moves to a different member without learning the reason. */
const MAX_WAIT_MS = 1_500;

/** Assigns ids to clients in order of connection. */
export class ClientNumbers {
  readonly #service: Log;
  /** Clients without an id, in order of arrival. */
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

  /** Called when a leader may be known. */
  ask(): void {
    if (this.#isUnderWay || this.#waiting.size === 0 || this.#service.leader === null) return;
    this.#isUnderWay = true;
    void this.#askFor(Math.min(this.#waiting.size, MAX_AT_ONCE));
  }

  /**
   * Requests the given number of ids. They go to the clients that have waited longest, even if other clients were
   * waiting when the batch was sent.
   */
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
    const text = `no answer from the cluster's log within ${MAX_WAIT_MS} ms`;
    client.dismiss("unavailable", why === "" ? text : `${text}: ${why}`, false);
  }
}
