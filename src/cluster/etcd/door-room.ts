/**
 * Limits the pending calls from etcd clients at a member. Refused calls are counted, and each reason is logged once.
 */
import type { Log } from "../../runtime/log.ts";
import { count, type EtcdCounts } from "../../runtime/metrics.ts";
import { EtcdError } from "./errors.ts";

export interface DoorLimits {
  readonly connections: number;
  /** The maximum number of pending calls, including streams. A call is pending until its response has been read. */
  readonly calls: number;
  /** The maximum number of unread response bytes, excluding streams. */
  readonly unreadBytes: number;
}

const doorLimits: DoorLimits = { connections: 1_000, calls: 4_096, unreadBytes: 64 * 1_048_576 };

/** The slot that one call occupies. */
export interface Place {
  /** Counts the response's bytes until it has been read. */
  hold(bytes: number): void;
  leave(): void;
}

export class DoorRoom {
  readonly #log: Log;
  #unread = 0;

  constructor(
    readonly counts: EtcdCounts,
    log: Log,
    readonly limits: DoorLimits = doorLimits,
  ) {
    this.#log = log;
  }

  /** @throws EtcdError `tooManyRequests` */
  enter(call: string): Place {
    count(this.counts.calls, call);
    const { calls, unreadBytes } = this.limits;
    if (this.counts.open >= calls) throw this.#full(`${calls} calls are in progress`);
    if (this.#unread >= unreadBytes) throw this.#full(`${unreadBytes} bytes of answers have not been read`);
    this.counts.open += 1;
    let held = 0;
    let isOver = false;
    return {
      hold: (bytes) => {
        if (isOver) return;
        held += bytes;
        this.#unread += bytes;
      },
      leave: () => {
        if (isOver) return;
        isOver = true;
        this.counts.open -= 1;
        this.#unread -= held;
      },
    };
  }

  fail(error: unknown): void {
    count(this.counts.refused, error instanceof EtcdError ? error.label : "other");
  }

  malformed(call: string, error: unknown): void {
    count(this.counts.refused, "malformed");
    this.#say("malformed", `a call to ${call} could not be decoded: ${error instanceof Error ? error.message : error}`);
  }

  noConnection(): void {
    count(this.counts.refused, "too-many-connections");
    this.#say("too-many-connections", `${this.limits.connections} connections are open, which is the maximum`);
  }

  #full(what: string): EtcdError {
    this.#say("too-many-requests", `${what}, which is the maximum: further calls are rejected`);
    return new EtcdError("tooManyRequests");
  }

  #say(reason: string, what: string): void {
    this.#log.once(`etcd ${reason}`, `clients of etcd's API: ${what}`, { event: "etcd-client-refused", reason });
  }
}
