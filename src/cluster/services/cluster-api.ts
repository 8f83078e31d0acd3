/**
 * The API of `member.cluster`, which reads and changes the member list. docs/operate/membership.md describes each
 * change and when it takes effect.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { CallOptions } from "./state/state-api.ts";

/** A member on the list. */
export interface ClusterMember {
  /** The id of the member. */
  readonly id: NodeId;
  /** The address at which the other members reach it, `host:port`. */
  readonly address: string;
  /**
   * `voter`: counts toward majorities. `learner`: has the same data but does not count. `joining`: on the list, but not
   * yet up to date or never started. `leaving`: being removed.
   */
  readonly role: "voter" | "learner" | "joining" | "leaving";
  /** Whether the member leads the log, as far as this member knows. */
  readonly isLeader: boolean;
}

/** The id and address of a member to add. */
export interface NewMember {
  /** An id that no member has ever had. */
  readonly id: NodeId;
  /** The address at which the other members reach it, `host:port`. */
  readonly address: string;
}

/** Options for `ClusterMembers.add()`. */
export interface AddOptions extends CallOptions {
  /**
   * Whether the member receives all data but does not vote until it is promoted. Default: false; it votes as soon as it
   * is up to date.
   */
  readonly learner?: boolean | undefined;
}

/** One of several changes that take effect together. */
export type MemberChange =
  /** See `ClusterMembers.add()`. */
  | { readonly type: "add"; readonly id: NodeId; readonly address: string; readonly learner?: boolean | undefined }
  /** See `ClusterMembers.promote()`. */
  | { readonly type: "promote"; readonly id: NodeId }
  /** See `ClusterMembers.remove()`. */
  | { readonly type: "remove"; readonly id: NodeId };

/**
 * Reads and changes the member list. A change is a log entry: its promise resolves when the change is committed, and
 * `settled()` resolves when it has taken effect.
 *
 * @throws UsageError `unknown-member`, `member-exists`, `bad-option`, `no-journal`; CoordinationError
 *   `change-under-way`, `last-voter`, and the errors of shared-state calls (without a majority, `request-timeout`).
 */
export interface ClusterMembers {
  /** @returns the member list. The read is linearizable */
  members(options?: CallOptions): Promise<readonly ClusterMember[]>;
  /**
   * Adds a member to the list. Afterwards, start it with `existing: true` and an empty folder.
   *
   * @example
   * await member.cluster.add({ id: 4, address: "10.0.0.4:7100" });
   * // Start member 4 with `existing: true`, then:
   * await member.cluster.settled();
   */
  add(member: NewMember, options?: AddOptions): Promise<void>;
  /** Makes a learner a voter. */
  promote(id: NodeId, options?: CallOptions): Promise<void>;
  /**
   * Removes a member permanently: its id cannot be used again. If the member's vote does not count yet, this cancels
   * its addition.
   */
  remove(id: NodeId, options?: CallOptions): Promise<void>;
  /**
   * Adds one member and removes another in the same step, as soon as the new one is up to date.
   *
   * @example
   * await member.cluster.replace(3, { id: 4, address: "10.0.0.4:7100" });
   */
  replace(id: NodeId, by: NewMember, options?: CallOptions): Promise<void>;
  /**
   * Commits several changes atomically, such as adding two members and removing one. The set of voters changes in one
   * step, once all new voters are up to date. If a new voter never starts, you can remove it. The change then continues
   * without that member, and removes no voter.
   */
  change(changes: readonly MemberChange[], options?: CallOptions): Promise<void>;
  /** Changes a member's address. Afterwards, restart the member at the new address with its existing folder. */
  move(id: NodeId, address: string, options?: CallOptions): Promise<void>;
  /** Transfers leadership of the log to the given member. Resolves when that member leads. */
  transfer(id: NodeId, options?: CallOptions): Promise<void>;
  /** Resolves once all changes have taken effect. */
  settled(options?: CallOptions): Promise<void>;
  /**
   * Takes a linearizable snapshot of all shared state, as the bytes of a snapshot file. `coterie snapshot restore`
   * creates a new cluster from it. docs/operate/recovery.md lists the state that the new cluster retains.
   *
   * @returns the state at the moment the promise resolves. It can be read more than once. Until it has been read, the
   *   member keeps a copy of its tables.
   * @example
   * await writeFile("state.snapshot", await member.cluster.snapshot()); // From `node:fs/promises`.
   */
  snapshot(options?: CallOptions): Promise<AsyncIterable<Uint8Array>>;
}
