/**
 * Checks locks, leaderships and permits as an external observer in virtual time: there is never more than one holder
 * or, for permits, more holders than the capacity allows.
 */
import type { NodeId, Tenure } from "../../src/index.ts";

interface Held {
  readonly node: NodeId;
  readonly token: number;
  readonly permits: number;
  /** Whether the holder can still rely on the grant, according to the clock of its own process, which may be paused. */
  readonly isHeld: () => boolean;
}

/** The capacity of the resource, and how much of it one holder takes. */
export interface Room {
  readonly permits: number;
  readonly capacity: number;
}
const ALL: Room = { permits: 1, capacity: 1 };

/**
 * Tracks the holders of resources. Throws an error if there are more holders than the capacity allows, or if an
 * exclusive holder's token is not higher than the previous one.
 */
export class ExclusiveUse {
  readonly #now: () => number;
  /** How many times a resource has been acquired. */
  count = 0;
  readonly #held = new Map<string, Held[]>();
  readonly #highest = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * @param clock the clock of the holder's process
   * @param isAlive whether that process is running
   */
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

  /** Also called when a hold is extended, since no other holder may have entered by then. */
  #requireRoom(name: string, { capacity }: Room): void {
    const holders = this.#holdersOf(name);
    if (holders.reduce((sum, { permits }) => sum + permits, 0) <= capacity) return;
    const each = holders.map(({ node, token, permits }) => `node ${node} (token ${token}, ${permits} of ${capacity})`);
    throw new Error(`${this.#at(name)}: ${each.join(" and ")} hold it`);
  }

  #at = (name: string): string => `${name} at ${this.#now().toFixed(3)} ms`;
}
