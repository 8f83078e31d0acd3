/**
 * Locks, leaderships and permits as an external observer sees them in virtual time: at most one holder, or as many as there are
 * permits.
 */
import type { NodeId, Tenure } from "../../src/index.ts";

interface Held {
  readonly node: NodeId;
  readonly token: number;
  readonly permits: number;
  /** Whether its holder can still rely on it, by the clock of its own process, which may be paused. */
  readonly isHeld: () => boolean;
}

/** The capacity of the resource, and the share of one holder. */
export interface Room {
  readonly permits: number;
  readonly capacity: number;
}
const ALL: Room = { permits: 1, capacity: 1 };

/** More holders than the capacity are a violation, and so is a token that has not grown if one holder takes all. */
export class ExclusiveUse {
  readonly #now: () => number;
  /** How often a resource was held. */
  count = 0;
  readonly #held = new Map<string, Held[]>();
  readonly #highest = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @param clock the clock of the holder's process; `isAlive`: whether it runs */
  enter(name: string, node: NodeId, tenure: Tenure, clock: () => number, isAlive: () => boolean, room = ALL): void {
    this.count += 1;
    const { token } = tenure;
    let isOver = false;
    tenure.signal.addEventListener("abort", () => {
      isOver = true;
    });
    let deadline: number | null = null;
    const held: Held = {
      node,
      token,
      permits: room.permits,
      isHeld: () => !isOver && isAlive() && (deadline === null || clock() < deadline),
    };
    const isAlone = room.permits === room.capacity;
    const highest = this.#highest.get(name) ?? Number.NEGATIVE_INFINITY;
    if (isAlone && token <= highest)
      throw new Error(`${this.#at(name)}: node ${node} has token ${token}, and ${highest} was given before`);
    this.#highest.set(name, Math.max(highest, token));
    this.#held.set(name, [...this.#holdersOf(name), held]);
    this.#requireRoom(name, room);
    tenure.onDeadline((later) => {
      deadline = later;
      if (held.isHeld()) this.#requireRoom(name, room);
    });
  }

  #holdersOf(name: string): Held[] {
    return (this.#held.get(name) ?? []).filter((held) => held.isHeld());
  }

  /** Also checked when a hold is extended: no other holder may have entered by then. */
  #requireRoom(name: string, { capacity }: Room): void {
    const holders = this.#holdersOf(name);
    if (holders.reduce((sum, { permits }) => sum + permits, 0) <= capacity) return;
    const each = holders.map(({ node, token, permits }) => `node ${node} (token ${token}, ${permits} of ${capacity})`);
    throw new Error(`${this.#at(name)}: ${each.join(" and ")} hold it`);
  }

  #at = (name: string): string => `${name} at ${this.#now().toFixed(3)} ms`;
}
