/**
 * The API of `member.cluster`: reads and changes the list of members. docs/operate/membership.md describes each change and
 * when it takes effect.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { CallOptions } from "./state/state-api.ts";

/** A member on the list. */
export interface ClusterMember {
  readonly id: NodeId;
  /** The address at which the other members reach it, `host:port`. */
  readonly address: string;
  /**
   * `voter`: counts for majorities. `learner`: has the same data and does not count. `joining`: on the list, but not up to
   * date yet or never started. `leaving`: being removed.
   */
  readonly role: "voter" | "learner" | "joining" | "leaving";
  /** Whether it leads the log, as far as this member knows. */
  readonly isLeader: boolean;
}

/** Id and address of a member to add. */
export interface NewMember {
  /** An id that no member has or has had. */
  readonly id: NodeId;
  /** The address at which the other members reach it, `host:port`. */
  readonly address: string;
}

/** Options of `ClusterMembers.add()`. */
export interface AddOptions extends CallOptions {
  /** The member receives all data but does not vote until it is promoted. Default: it votes as soon as it is up to date. */
  readonly learner?: boolean | undefined;
}

/** One of several changes that take effect together. */
export type MemberChange =
  | { readonly type: "add"; readonly id: NodeId; readonly address: string; readonly learner?: boolean | undefined }
  | { readonly type: "promote"; readonly id: NodeId }
  | { readonly type: "remove"; readonly id: NodeId };

/**
 * Reads and changes the list of members. A change is an entry of the log: its promise resolves when the change is
 * committed, and `settled()` resolves when it has taken effect.
 *
 * @throws UsageError `unknown-member`, `member-exists`, `bad-option`, `no-journal`; CoordinationError `change-under-way`,
 *   `last-voter`, and the errors of shared-state calls: without a majority, `request-timeout`.
 */
export interface ClusterMembers {
  /** @returns the list of members; the read is linearizable */
  members(options?: CallOptions): Promise<readonly ClusterMember[]>;
  /** Adds a member to the list. Start it afterwards with `existing: true` and an empty folder. */
  add(member: NewMember, options?: AddOptions): Promise<void>;
  /** Makes a learner a voter. */
  promote(id: NodeId, options?: CallOptions): Promise<void>;
  /**
   * Removes a member for good: its id cannot be used again. For a member whose vote does not count yet, cancels its
   * addition.
   */
  remove(id: NodeId, options?: CallOptions): Promise<void>;
  /** Adds one member and removes another in the same step, as soon as the new one is up to date. */
  replace(id: NodeId, by: NewMember, options?: CallOptions): Promise<void>;
  /**
   * Makes several changes, all or none, such as adding two members and removing one. The set of voters changes in one step,
   * once all new voters are up to date. You can remove a new voter that never starts: the change continues without it, and
   * then removes no voter.
   */
  change(changes: readonly MemberChange[], options?: CallOptions): Promise<void>;
  /** Changes a member's address. Restart the member there, with its folder. */
  move(id: NodeId, address: string, options?: CallOptions): Promise<void>;
  /** Transfers leadership of the log to that member. Resolves when it leads. */
  transfer(id: NodeId, options?: CallOptions): Promise<void>;
  /** Resolves once all changes have taken effect. */
  settled(options?: CallOptions): Promise<void>;
  /**
   * Takes a snapshot of all shared state, linearizable, as the bytes of a snapshot file. `coterie snapshot restore` founds
   * another cluster from it. docs/operate/recovery.md lists what that cluster keeps.
   *
   * @returns the state at the moment when the promise resolves. It may be read more than once. The member keeps a copy of
   *   its tables until it has been read.
   */
  snapshot(options?: CallOptions): Promise<AsyncIterable<Uint8Array>>;
}
