/**
 * Who runs an instance as this member does, and who otherwise. What a majority is known to have run alike is established: one
 * member with other options cannot end it, and two majorities meet in a member, which has run but one of them at a time.
 */
import type { NodeId } from "../../core/protocol.ts";
import { majority } from "../../core/quorums.ts";

export class Agreement {
  readonly #fellows: Set<NodeId>;
  readonly #strangers = new Set<NodeId>();
  readonly #quorum: number;
  #isEstablished = false;

  constructor(self: NodeId, peers: readonly NodeId[]) {
    this.#fellows = new Set([self]);
    this.#quorum = majority(peers.length + 1);
    this.#look();
  }

  get isEstablished(): boolean {
    return this.#isEstablished;
  }

  /** An earlier run of this member has known it to be so. */
  establish(): void {
    this.#isEstablished = true;
  }

  /** That member runs it likewise. */
  join(node: NodeId): void {
    this.#strangers.delete(node);
    this.#fellows.add(node);
    this.#look();
  }

  /** That member runs it otherwise, or cannot run it: what it says is not meant for this instance. */
  part(node: NodeId): void {
    this.#fellows.delete(node);
    this.#strangers.add(node);
  }

  isStranger(node: NodeId): boolean {
    return this.#strangers.has(node);
  }

  /** Whether this member gives way to those that run it otherwise: nothing is established here, or something else is there. */
  get yields(): boolean {
    return !this.#isEstablished || this.#strangers.size >= this.#quorum;
  }

  #look(): void {
    if (this.#fellows.size >= this.#quorum) this.#isEstablished = true;
  }
}
