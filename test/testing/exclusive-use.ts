/** What is one member's alone at a time: locks and leaderships, watched from outside, in the world's time. */
import type { NodeId, Tenure } from "../../src/index.ts";

interface Held {
  readonly node: NodeId;
  readonly token: number;
  /** Whether its holder can still rely on it, by the clock of its own process, which may be paused. */
  readonly isHeld: () => boolean;
}

/** The places that nobody shares: a second holder of one, or a token that has not grown, is a violation. */
export class ExclusiveUse {
  /** How often anything was held. */
  count = 0;
  readonly #held = new Map<string, Held>();
  readonly #highest = new Map<string, number>();

  constructor(private readonly now: () => number) {}

  /** @param clock of the holder's process; `isAlive`: whether that runs. */
  enter(name: string, node: NodeId, tenure: Tenure<number>, clock: () => number, isAlive: () => boolean): void {
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
      isHeld: () => !isOver && isAlive() && (deadline === null || clock() < deadline),
    };
    this.#requireAlone(name, held);
    const highest = this.#highest.get(name) ?? Number.NEGATIVE_INFINITY;
    if (token <= highest)
      throw new Error(`${this.#at(name)}: node ${node} has token ${token}, and ${highest} was given before`);
    this.#highest.set(name, token);
    this.#held.set(name, held);
    tenure.onDeadline((later) => {
      if (isAlive()) this.#requireLatest(name, held);
      deadline = later;
    });
  }

  #requireAlone(name: string, { node, token }: Held): void {
    const other = this.#held.get(name);
    if (other?.isHeld())
      throw new Error(
        `${this.#at(name)}: node ${node} (token ${token}) and node ${other.node} (token ${other.token}) hold it`,
      );
  }

  /** Nobody may have come in by the time that it is confirmed further. */
  #requireLatest(name: string, held: Held): void {
    const latest = this.#held.get(name);
    if (latest !== held && latest?.isHeld())
      throw new Error(`${this.#at(name)}: node ${held.node} is confirmed, and node ${latest.node} holds it`);
  }

  #at = (name: string): string => `${name} at ${this.now().toFixed(3)} ms`;
}
