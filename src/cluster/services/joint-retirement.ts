/**
 * Puts away, at all members together, what no member may forget alone: channels, and algorithms whose members rely on each other.
 * The member with the lowest id leads: once nobody has used a name there for a while it asks the others (`ask`), each of which
 * answers if nobody has used it there either (`idle`), and when all have, tells them that it is over (`over`). While any member is
 * suspected nothing is put away. A member that uses the name again after its answer opens it anew when it hears that it is over.
 *
 * Heartbeats are on the same links as messages. So a member that is not suspected has nothing on its way that is older than its
 * last beat, and nothing of a name that it has not used for a while; what a timer still sends is dropped for a moment.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform } from "../../runtime/platform/platform.ts";

export type RetirementMessage = { type: "ask"; round: number } | { type: "idle"; round: number } | { type: "over" };

export interface JointRetirementOptions {
  readonly platform: Platform;
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
  send(to: NodeId, key: string, message: RetirementMessage): void;
  /** Whether nobody here uses it, nor has for a while; true of what is not open here. */
  isIdle(key: string): boolean;
  /** All have agreed. */
  retire(key: string): void;
}

/** Where a member does not answer, the name is in use there, or it cannot: it is asked again. */
const ASK_EVERY_MS = 2_000;
/** What others still send of a name that is over is dropped for so long. */
const GRACE_MS = 2_000;

interface Round {
  readonly number: number;
  readonly since: number;
  readonly answered: Set<NodeId>;
}

export class JointRetirement {
  readonly #options: JointRetirementOptions;
  readonly #rounds = new Map<string, Round>();
  /** By name: when it was put away. */
  readonly #over = new Map<string, number>();
  readonly #suspected = new Set<NodeId>();
  #number = 0;

  constructor(options: JointRetirementOptions) {
    this.#options = options;
  }

  note({ type, node }: { readonly type: string; readonly node?: NodeId }): void {
    if (node === undefined) return;
    if (type === "suspect") this.#suspected.add(node);
    else if (type === "restore") this.#suspected.delete(node);
  }

  /** Whether it is over here, and messages of it are from before that. */
  isOver(key: string): boolean {
    return this.#over.has(key);
  }

  /** It has been opened again. */
  opened(key: string): void {
    this.#over.delete(key);
  }

  /** Of what nobody here uses. */
  consider(key: string, now: number): void {
    const { self, peers, send } = this.#options;
    if (this.#suspected.size > 0 || peers.some((peer) => peer < self)) return;
    const round = this.#rounds.get(key);
    if (round !== undefined && now - round.since < ASK_EVERY_MS) return;
    this.#number += 1;
    this.#rounds.set(key, { number: this.#number, since: now, answered: new Set() });
    for (const peer of peers) send(peer, key, { type: "ask", round: this.#number });
    if (peers.length === 0) this.#conclude(key);
  }

  sweep(now: number): void {
    for (const [key, since] of this.#over) if (now - since >= GRACE_MS) this.#over.delete(key);
    for (const [key, { since }] of this.#rounds) if (now - since >= 2 * ASK_EVERY_MS) this.#rounds.delete(key);
  }

  receive(from: NodeId, key: string, message: RetirementMessage): void {
    const { isIdle, send, peers } = this.#options;
    if (message.type === "ask") {
      if (this.#suspected.size === 0 && isIdle(key)) send(from, key, { type: "idle", round: message.round });
    } else if (message.type === "over") this.#end(key);
    else {
      const round = this.#rounds.get(key);
      if (round?.number !== message.round) return; // Of an earlier round.
      round.answered.add(from);
      if (peers.every((peer) => round.answered.has(peer))) this.#conclude(key);
    }
  }

  #conclude(key: string): void {
    const { peers, isIdle, send } = this.#options;
    this.#rounds.delete(key);
    if (this.#suspected.size > 0 || !isIdle(key)) return;
    for (const peer of peers) send(peer, key, { type: "over" });
    this.#end(key);
  }

  #end(key: string): void {
    this.#over.set(key, this.#options.platform.clock.now());
    this.#options.retire(key);
  }
}
