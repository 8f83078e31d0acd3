/**
 * What a member that serves knows of locks that it has put away: for how long it has served, and the highest token that it has given.
 * A lock that is opened goes on from there, so no token comes twice, and nobody has to be asked who may hold it.
 */
import type { NodeId, Tagged } from "../../core/protocol.ts";
import { monitoredElectedServer } from "../../protocols/mutex/elected-server/elected-server.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import { by, wired } from "./wired.ts";

export class ServedLocks {
  readonly #self: NodeId;
  readonly #platform: Platform;
  /** The epoch in which this member serves; null while it does not. */
  servesIn: number | null = null;
  #since = 0;
  /** Of all locks that were put away; tokens of a later epoch are higher. */
  #token = 0;

  /** The highest epoch that this member has heard of. */
  epoch = 0;

  constructor(self: NodeId, platform: Platform) {
    this.#self = self;
    this.#platform = platform;
  }

  /** Of shared parts: this stands for all locks that are put away, and is told what they would be. */
  readonly onShared = wired(
    monitoredElectedServer.algorithm,
    monitoredElectedServer.wires,
    by({
      elected: ({ leader, epoch }) => {
        this.epoch = Math.max(this.epoch, epoch);
        this.servesIn = leader === this.#self ? epoch : null;
        this.#since = this.#platform.clock.now();
      },
      deposed: () => {
        this.servesIn = null;
      },
    }),
  ).onShared;

  putAway(token: number): void {
    this.#token = Math.max(this.#token, token);
  }

  /**
   * What a lock that is opened is told; null where this member does not serve.
   * @param shortfallMs so much later than by its own lease it may grant what it does not know to be free.
   */
  resume(shortfallMs: number): Tagged | null {
    if (this.servesIn === null) return null;
    const servedMs = this.#platform.clock.now() - this.#since - shortfallMs;
    return { type: "resume", token: this.#token, servedMs } as Tagged;
  }
}
