/**
 * What a member that serves knows of locks that it has put away: for how long it has served, and the highest token that it has given.
 * A lock that is opened goes on from there, so no token comes twice, and nobody has to be asked who may hold it.
 */
import type { NodeId, Tagged } from "../../core/protocol.ts";
import type { Platform } from "../../runtime/platform/platform.ts";

export class ServedLocks {
  #since: number | null = null;
  /** Of all locks that were put away; tokens of a later epoch are higher. */
  #token = 0;

  /** The highest epoch that this member has heard of. */
  epoch = 0;

  constructor(
    private readonly self: NodeId,
    private readonly platform: Platform,
  ) {}

  /** A command to all instances may say that this member begins to serve, or ends. */
  note(command: Tagged & { readonly leader?: NodeId; readonly epoch?: number }): void {
    this.epoch = Math.max(this.epoch, command.epoch ?? 0);
    if (command.type === "elected") this.#since = command.leader === this.self ? this.platform.clock.now() : null;
    else if (command.type === "deposed") this.#since = null;
  }

  putAway(token: number): void {
    this.#token = Math.max(this.#token, token);
  }

  /**
   * What a lock that is opened is told; null where this member does not serve.
   * @param shortfallMs so much later than by its own lease it may grant what it does not know to be free.
   */
  resume(shortfallMs: number): Tagged | null {
    if (this.#since === null) return null;
    const servedMs = this.platform.clock.now() - this.#since - shortfallMs;
    return { type: "resume", token: this.#token, servedMs } as Tagged;
  }
}
