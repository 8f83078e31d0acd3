/**
 * A node's identity in the handshake, in addition to its address: which members it considers to be its group, and which
 * journal stores its promises. Nodes whose identities contradict each other must not take part in the same decision.
 * They therefore have no link at all, and each learns the other's identity from the handshake.
 *
 * A group is founded once, by all of its members. Each of them must learn every other member's journal, and stores its
 * name. From then on, a member with a different journal is refused. So if a member loses its journal, and with it its
 * promises, all the other members notice. Of two lists that share a member, only one can ever be founded, because that
 * member's journal contains only one list.
 *
 * The founders identify the group permanently. Later changes are recorded in a list that the members agree on, which
 * also records each member's journal. A newcomer founds nothing. It waits until the members that it connects to have it
 * on their list.
 */

import { hash } from "../../core/plain.ts";
import type { NodeId } from "../../core/protocol.ts";
import { boolean, struct, text } from "../../core/shape.ts";
import type { Log } from "../log.ts";
import { docsPage } from "../package-files.ts";

/** The part of the handshake that compares two nodes' groups. */
export interface Identity {
  /** The ids of all members, as formatted by `groupText`. */
  readonly group: string;
  /** The name of the journal. Empty if there is none. */
  readonly journal: string;
  /**
   * Whether the sender's journal records that the group was founded. If not, the journal may have replaced a lost one.
   * Always true for a newcomer and for a node without a journal.
   */
  readonly isFounded: boolean;
  /** The journal that the sender has on record for the node that it contacts. Empty if it has none. */
  readonly remembers: string;
}

const MAX_GROUP_BYTES = 480;
/** The maximum length of a journal's name. */
export const MAX_JOURNAL_BYTES = 40;

/** The shape of an identity. */
export const identityShape = struct<Identity>({
  group: text(MAX_GROUP_BYTES),
  journal: text(MAX_JOURNAL_BYTES),
  isFounded: boolean,
  remembers: text(MAX_JOURNAL_BYTES),
});

/**
 * Returns text that is the same for equal sets of members, regardless of their order. Long lists are abbreviated after
 * the first few ids.
 */
export function groupText(ids: readonly NodeId[]): string {
  const all = [...ids].sort((a, b) => a - b).join(", ");
  if (all.length <= MAX_GROUP_BYTES) return all;
  return `${all.slice(0, MAX_GROUP_BYTES - 80)} …: ${ids.length} members with the hash ${hash([all])}`;
}

/**
 * How two nodes can differ. `not-founded`: they agree, but one of them has not yet received the identities of the whole
 * group, or its journal is not yet known to every member. `removed`: one of them was removed from the list.
 */
export const differences = ["wrong-members", "lost-journal", "not-founded", "removed"] as const;
export type Difference = (typeof differences)[number];

/** Why two nodes have no link. */
export interface Objection {
  readonly reason: Difference;
  readonly detail: string;
}

/** A difference that only an operator can resolve. */
export interface Disagreement extends Objection {
  readonly reason: "wrong-members" | "lost-journal";
  readonly detail: string;
  /** The other node's members. */
  readonly members: string;
}

/** A node's knowledge of its group, as stored in its journal. */
export interface Memory {
  /** The name of this journal. */
  readonly journal: string;
  /** The journals of the other members. Null until the group has been founded. */
  readonly others: ReadonlyMap<NodeId, string> | null;
  /** Stores the journals of the other members, which founds the group. Calls `then` when they are durable. */
  found(others: ReadonlyMap<NodeId, string>, then: () => void): void;
}

/** The member list that the group has agreed on. */
export interface AgreedMembers {
  readonly founders: readonly NodeId[];
  /** The members and their journals. `journal` is empty for a member that has not connected yet. */
  readonly members: readonly { readonly member: NodeId; readonly journal: string }[];
  readonly removed: readonly NodeId[];
}

export interface GroupIdentityOptions {
  readonly self: NodeId;
  /** The founders. For a newcomer: itself and the members that it knows. */
  readonly members: readonly NodeId[];
  /** Whether this node will join an existing group. */
  readonly isNewcomer?: boolean;
  /** Whether newcomers are admitted. False if the set of nodes is fixed. */
  readonly takesNewcomers?: boolean;
  readonly log: Log;
  /** The knowledge stored in the journal. Null for a node without a journal, which has nothing to lose. */
  readonly memory?: Memory | null;
}

/**
 * The maximum number of nonmembers to remember. The ones that connected most recently are kept. Nonmembers can make up
 * ids, so the number must be bounded.
 */
const MAX_STRANGERS = 128;

/** This node's identity as presented to the other nodes, and the identities that they have presented. */
export class GroupIdentity {
  readonly #options: GroupIdentityOptions;
  group: string;
  /** Called when an operator must resolve a difference with a node. Null: the difference has been resolved. */
  onDisagreement: (node: NodeId, disagreement: Disagreement | null) => void = () => {};
  /** Called when the group has been founded. Links that were refused before may now open. */
  onFounded: () => void = () => {};
  /** Called when a member connects for the first time, with its journal. */
  onFirstCall: (node: NodeId, journal: string) => void = () => {};
  /** Called when another node reports that this node was removed from the member list. */
  onRemoved: (by: NodeId) => void = () => {};
  readonly #disagreements = new Map<NodeId, Disagreement>();
  /** Nonmembers with a disagreement. The one that connected last comes last. */
  readonly #strangers = new Set<NodeId>();
  /** Nonmembers that have their own keys for log messages. */
  readonly #namedStrangers = new Set<NodeId>();
  #peers: readonly NodeId[];
  #agreed: AgreedMembers | null = null;
  readonly #memory: Memory | null;
  /** The journals that the other nodes have presented. */
  readonly #met = new Map<NodeId, string>();
  #others: ReadonlyMap<NodeId, string> | null;
  #isFounding = false;

  constructor(options: GroupIdentityOptions) {
    this.#options = options;
    const { self, members, memory, isNewcomer = false } = options;
    this.group = isNewcomer ? "" : groupText(members);
    this.#peers = members.filter((member) => member !== self);
    this.#memory = memory ?? null;
    this.#others = memory?.others ?? null;
    this.#foundIfMet(); // A single member founds its group immediately.
  }

  /**
   * Whether this node may take part in decisions. A node with a journal must first receive the identities of all
   * members, unless it is a newcomer.
   */
  get isFounded(): boolean {
    return this.#memory === null || this.#others !== null || this.#options.isNewcomer === true;
  }

  /** Adopts a new list that the members have agreed on. */
  learn(agreed: AgreedMembers): void {
    this.#agreed = agreed;
    this.group = groupText(agreed.founders);
    this.#peers = agreed.members.map(({ member }) => member).filter((member) => member !== this.#options.self);
  }

  /** Whether the node is another member, according to this node's list. */
  isPeer(node: NodeId): boolean {
    return this.#peers.includes(node);
  }

  /** Whether the other node is in this group and has this node's journal on record. */
  isRememberedBy({ group, isFounded, remembers }: Identity): boolean {
    const isOfGroup = group !== "" && (group === this.group || this.group === "");
    return isOfGroup && isFounded && remembers !== "" && remembers === this.#memory?.journal;
  }

  isRemoved(node: NodeId): boolean {
    return this.#agreed?.removed.includes(node) === true;
  }

  /** Returns the journal that this node has on record for `node`. Empty if it has none. */
  journalOf(node: NodeId): string {
    if (node === this.#options.self) return this.#memory?.journal ?? "";
    const listed = this.#agreed?.members.find(({ member }) => member === node)?.journal ?? "";
    return listed === "" ? (this.#others?.get(node) ?? "") : listed;
  }

  /**
   * The members whose identity a new group is still waiting for. For a newcomer that is not on any list yet, these are
   * the members that it connects to.
   */
  get awaited(): readonly NodeId[] {
    if (this.#isOnNoList) return this.#peers;
    return this.isFounded ? [] : this.#peers.filter((peer) => !this.#met.has(peer));
  }

  /** Why this node has no link to one of the members, and how to fix it. Null if no handshake has found a reason. */
  get obstacle(): string | null {
    const found = [...this.#disagreements].filter(([node]) => this.isPeer(node)).map(([, each]) => each);
    const first = found.find(({ reason }) => reason === "lost-journal") ?? found[0];
    return first === undefined ? null : `${first.reason}: ${first.detail}`;
  }

  /**
   * Logs which members a new group or a newcomer is waiting for. Logs nothing if there is a known obstacle, since
   * waiting will not help.
   */
  sayAwaited(): void {
    if (this.awaited.length === 0 || this.obstacle !== null) return;
    const nodes = `${this.awaited.length === 1 ? "node" : "nodes"} ${this.awaited.join(", ")}`;
    this.#options.log.warn(
      this.#isOnNoList
        ? `waiting to be added to the member list of ${nodes}, because it was started with existing: true (--existing). If all members are starting for the first time, no cluster can be founded this way: stop them, empty their folders and start them without existing`
        : `waiting for ${nodes}: all members must be running when a cluster starts for the first time; after that, a majority is enough`,
    );
  }

  get #isOnNoList(): boolean {
    return this.#options.isNewcomer === true && this.#agreed === null;
  }

  /** Returns the identity to send to this node. */
  toward(node: NodeId): Identity {
    const { group, isFounded } = this;
    const remembers = this.journalOf(node);
    return { group, journal: this.#memory?.journal ?? "", isFounded, remembers };
  }

  /** Compares another node's identity, taken from its hello or refusal. Returns why there can be no link, or null. */
  judge(node: NodeId, theirs: Identity): Objection | null {
    if (this.isRemoved(node))
      return { reason: "removed", detail: `node ${node} has been permanently removed from the cluster` };
    this.#adopt(theirs);
    const found = this.#difference(node, theirs);
    if (found !== null) {
      this.#keep(node, found);
      return found;
    }
    this.#strangers.delete(node);
    if (this.#disagreements.delete(node)) this.onDisagreement(node, null);
    if (this.#memory === null || theirs.journal === "") return null;
    if (this.#isFirstCall(node) && !this.isRememberedBy(theirs)) {
      this.onFirstCall(node, theirs.journal);
      return { reason: "not-founded", detail: `the members are recording node ${node}'s journal` };
    }
    if (theirs.isFounded && this.isFounded) return null;
    this.#meet(node, theirs.journal); // After the last member, this founds the group as soon as the record is durable.
    return {
      reason: "not-founded",
      detail: "the members of this group have not all connected to each other yet, which is required once",
    };
  }

  /** The current differences that only an operator can resolve. */
  get disagreements(): ReadonlyMap<NodeId, Disagreement> {
    return this.#disagreements;
  }

  /** If this newcomer has no group yet, adopts the first founded group that replies. */
  #adopt({ group, isFounded }: Identity): void {
    if (this.group === "" && isFounded) this.group = group;
  }

  /**
   * Whether this node's list contains the node, but no journal for it. If the node also has this node's journal on
   * record, the other members have already admitted it with a later list.
   */
  #isFirstCall(node: NodeId): boolean {
    return this.#agreed !== null && this.isPeer(node) && this.journalOf(node) === "";
  }

  #keep(node: NodeId, found: Disagreement): void {
    const isMember = this.#peers.includes(node);
    if (!isMember) this.#makeRoomFor(node);
    if (this.#disagreements.get(node)?.detail === found.detail) return;
    this.#disagreements.set(node, found);
    const fields = { event: "peer-differs", peer: node, reason: found.reason };
    const whose = isMember || this.#namedStrangers.has(node) ? node : "of others"; // These nonmembers share a log key.
    this.#options.log.once(`${found.reason} ${whose}`, `${found.reason}: ${found.detail}`, fields);
    this.onDisagreement(node, found);
  }

  #makeRoomFor(stranger: NodeId): void {
    this.#strangers.delete(stranger);
    this.#strangers.add(stranger);
    if (this.#namedStrangers.size < MAX_STRANGERS) this.#namedStrangers.add(stranger);
    const [oldest] = this.#strangers;
    if (this.#strangers.size <= MAX_STRANGERS || oldest === undefined) return;
    this.#strangers.delete(oldest);
    this.#disagreements.delete(oldest);
  }

  #meet(node: NodeId, journal: string): void {
    if (this.isFounded) return;
    this.#met.set(node, journal);
    this.#foundIfMet();
  }

  #foundIfMet(): void {
    if (this.#isFounding || this.isFounded || this.awaited.length > 0) return;
    this.#isFounding = true;
    const others = new Map(this.#met);
    this.#memory?.found(others, () => {
      this.#others = others;
      this.onFounded();
    });
  }

  #difference(node: NodeId, theirs: Identity): Disagreement | null {
    const { group, journal, remembers } = theirs;
    const differs = (reason: Disagreement["reason"], detail: string): Disagreement => ({
      reason,
      detail,
      members: group,
    });
    const isNew = group === "" && this.isPeer(node);
    if (group !== this.group && !isNew)
      return differs(
        "wrong-members",
        `node ${node} has ${listText(group)}, but this node has ${this.group || NO_LIST}: ${this.#remedy(node, theirs)}`,
      );
    if (this.#memory === null || journal === "") return null;
    const remembered = this.journalOf(node);
    if (remembered !== "" && remembered !== journal)
      return differs(
        "lost-journal",
        `node ${node} has a new journal, but this node remembers another: it has lost its promises and must not take part. ${REMEDY}`,
      );
    if (remembers !== "" && remembers !== this.#memory.journal)
      return differs(
        "lost-journal",
        `this node has a new journal, but node ${node} remembers another: it has lost its promises and must not take part. ${REMEDY}`,
      );
    return null;
  }

  /**
   * Returns how to resolve the difference between two lists. A folder may only be emptied if its member was never in a
   * founded group.
   */
  #remedy(node: NodeId, theirs: Identity): string {
    if (this.group === "") return "they will have no link until that group has been founded";
    if (theirs.group === "") return "they will have no link until it is on that list";
    const remedy = "they will have no link until both are started with the same list";
    if (this.#options.takesNewcomers !== true || this.isFounded === theirs.isFounded) return remedy;
    const newcomer = this.isFounded ? `node ${node}` : "this node";
    return `${remedy}. If ${newcomer} should join a running cluster, empty its folder and start it with existing: true (--existing)`;
  }
}

const NO_LIST = "no list yet";
const listText = (group: string): string => (group === "" ? NO_LIST : `the members ${group}`);

/** The state of the group, for pages and programs. */
export interface Standing {
  /** The nodes with a disagreement, members or not. This node has no link to them. */
  readonly refusals: readonly Refused[];
  /**
   * The members whose identity a new group is still waiting for. For a newcomer that is not on any list yet, these are
   * the members that it connects to.
   */
  readonly awaited: readonly NodeId[];
}

/** A node with a disagreement. */
export interface Refused extends Disagreement {
  readonly node: NodeId;
}

/** Returns a node's refusals and the members that it is waiting for. */
export const standingOf = ({ disagreements, awaited }: GroupIdentity): Standing => ({
  refusals: [...disagreements].map(([node, disagreement]) => ({ node, ...disagreement })),
  awaited,
});

const REMEDY =
  "Stop it and restore its folder. If the folder is lost, make a new one with `coterie member replace`. " +
  `If the cluster was restored from a snapshot, the folder belongs to the old cluster: ${docsPage("operate/recovery.md")}`;
