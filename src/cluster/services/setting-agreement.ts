/**
 * Who runs an instance as this member does, and who otherwise. What a majority has been known here to run alike is established,
 * and this member gives it up only when a majority is known to run it otherwise: so one member with other options ends nothing
 * that a majority runs.
 *
 * Fellows are counted over time: of who has crashed since, nothing newer is known. So two settings can both come to be held for
 * established, each by some of the members. With all of an odd number there, one of the two is run by a majority, and the others
 * give way once they hear of it. Of an even number each half may keep to its own; so may those that are there when they are
 * too few on either side to be a majority.
 */
import type { NodeId } from "../../core/protocol.ts";
import { majority } from "../../core/quorums.ts";

export class SettingAgreement {
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

  /** Whether that member has announced it likewise since this one runs it: what it says may be taken. */
  isFellow(node: NodeId): boolean {
    return this.#fellows.has(node);
  }

  isStranger(node: NodeId): boolean {
    return this.#strangers.has(node);
  }

  /** Whether a majority runs it otherwise. */
  get isOutvoted(): boolean {
    return this.#strangers.size >= this.#quorum;
  }

  /** Whether this member gives way to who refuses it: nothing is established here, or something else is there. */
  get yields(): boolean {
    return !this.#isEstablished || this.isOutvoted;
  }

  #look(): void {
    if (this.#fellows.size >= this.#quorum) this.#isEstablished = true;
  }
}
