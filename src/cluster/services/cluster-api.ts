/** The members of a cluster as its users see and change them. docs/operate/membership.md says what each change does, and when it is in effect. */
import type { NodeId } from "../../core/protocol.ts";
import type { CallOptions } from "./state/state-api.ts";

export interface ClusterMember {
  readonly id: NodeId;
  /** Where the others reach it, `host:port`. */
  readonly address: string;
  /**
   * `voter`: it counts for majorities. `learner`: it has all that the others have, and does not count. `joining`: it is to be one of
   * these, and is not up to date yet, or has never been there. `leaving`: it is being removed.
   */
  readonly role: "voter" | "learner" | "joining" | "leaving";
  /** Of the log, as far as this member knows. */
  readonly isLeader: boolean;
}

export interface NewMember {
  /** One that no member has, or has had. */
  readonly id: NodeId;
  /** Where the others reach it, `host:port`. */
  readonly address: string;
}

export interface AddOptions extends CallOptions {
  /** It is to have all that the others have, and not to vote until it is promoted. Default: it votes as soon as it is up to date. */
  readonly learner?: boolean | undefined;
}

/** One of several changes that take effect together. */
export type MemberChange =
  | { readonly type: "add"; readonly id: NodeId; readonly address: string; readonly learner?: boolean | undefined }
  | { readonly type: "promote"; readonly id: NodeId }
  | { readonly type: "remove"; readonly id: NodeId };

/**
 * Each change goes through the log, and resolves once all agree that it is to be; `settled()` waits until it is in effect. Throws UsageError `unknown-member`,
 * `member-exists`, `bad-option`, `no-journal`; CoordinationError `change-under-way`, `last-voter`, and what calls of shared state
 * throw: without a majority, `request-timeout`.
 */
export interface ClusterMembers {
  /** Linearizable. */
  members(options?: CallOptions): Promise<readonly ClusterMember[]>;
  /** Puts a member on the list, which is then started with `existing: true` and an empty folder. */
  add(member: NewMember, options?: AddOptions): Promise<void>;
  /** A learner is to vote. */
  promote(id: NodeId, options?: CallOptions): Promise<void>;
  /** For good: its id is not given again. Of a member whose vote does not count yet: takes back what it was added for. */
  remove(id: NodeId, options?: CallOptions): Promise<void>;
  /** Adds one, and removes another in the same step, as soon as the new one is up to date. */
  replace(id: NodeId, by: NewMember, options?: CallOptions): Promise<void>;
  /**
   * Several at once, all or none, such as two that are added and one that is removed: who votes changes in one step, once all that are
   * to vote are up to date. `remove` of one that never comes goes on without it, and nobody that votes is removed then.
   */
  change(changes: readonly MemberChange[], options?: CallOptions): Promise<void>;
  /** It is started anew at another address, with its folder. */
  move(id: NodeId, address: string, options?: CallOptions): Promise<void>;
  /** Has that member lead the log. Resolves when it does. */
  transfer(id: NodeId, options?: CallOptions): Promise<void>;
  /** Resolves once all changes are in effect. */
  settled(options?: CallOptions): Promise<void>;
  /**
   * All that members share, linearizable, as the bytes of a snapshot file: `coterie snapshot restore` founds another cluster from it.
   * docs/operate/recovery.md says what that one keeps. It is of the moment when the promise resolves, and may be read more than once. The
   * member holds a copy of its tables as long as it is read.
   */
  snapshot(options?: CallOptions): Promise<AsyncIterable<Uint8Array>>;
}
