/** Counts the consequences of the faults in a random run. */
import type { EventOf, NodeId } from "../../../src/core/protocol.ts";
import type { AnyReplica } from "./clients.ts";

export interface Reached {
  readonly crashes: number;
  readonly recoveries: number;
  /** The number of times that a node became leader. */
  readonly leaders: number;
  /** The number of membership changes that took effect, at the node that saw the most of them. */
  readonly memberships: number;
  /** The numbers of snapshots that state machines took, and that nodes received. */
  readonly snapshots: number;
  readonly installed: number;
  /** Journal records that were not durable when their node crashed. */
  readonly lostRecords: number;
}

export class Tally {
  readonly #nodes: readonly NodeId[];
  #crashes = 0;
  #leaders = 0;
  #snapshots = 0;
  #installed = 0;
  /** The number of times that each node has started. */
  readonly #lives = new Map<NodeId, number>();
  #starting: NodeId | null = null;
  readonly #members = new Map<NodeId, { last: string; changes: number }>();

  /** @param nodes the initial voters */
  constructor(nodes: readonly NodeId[]) {
    this.#nodes = nodes;
  }

  get reached(): Omit<Reached, "lostRecords"> {
    const recoveries = [...this.#lives.values()].reduce((sum, lives) => sum + lives - 1, 0);
    const memberships = Math.max(0, ...[...this.#members.values()].map(({ changes }) => changes));
    const [crashes, leaders, snapshots, installed] = [this.#crashes, this.#leaders, this.#snapshots, this.#installed];
    return { crashes, recoveries, leaders, memberships, snapshots, installed };
  }

  starts(node: NodeId): void {
    this.#lives.set(node, (this.#lives.get(node) ?? 0) + 1);
    this.#starting = node;
  }

  /** Call when a node has completed its start. */
  runs(): void {
    this.#starting = null;
  }

  crashes(): void {
    this.#crashes += 1;
  }

  happened(node: NodeId, { type, body }: EventOf<AnyReplica>): void {
    if (type === "machine" && body.type === "saved") this.#snapshots += 1;
    if (type !== "log") return;
    if (body.type === "led" && body.leader === node) this.#leaders += 1;
    if (body.type === "installed" && this.#starting !== node) this.#installed += 1;
    if (body.type === "reconfigured") this.#note(node, JSON.stringify([body.voters, body.learners]));
  }

  #note(node: NodeId, members: string): void {
    const { last, changes } = this.#members.get(node) ?? { last: JSON.stringify([this.#nodes, []]), changes: 0 };
    if (members !== last) this.#members.set(node, { last: members, changes: changes + 1 });
  }
}
