/**
 * What a node says of itself in the hand-shake besides its address: which members it counts as its group, and which journal
 * keeps its promises. Two nodes that differ in that must not take part in one decision, so they have no link at all, and
 * each learns from the hand-shake what the other one has.
 *
 * A group is founded once, by all its members: each has to hear of every other's journal, and writes them down. From then on
 * nobody comes in with another journal. So a member that has lost its own, and with it what it has promised, is noticed by each
 * of the others; and of two lists that share a member only one can ever be founded, for that member's journal knows one list.
 *
 * The founders name the group for good. Who is in it later is said by a list that the members agree on, which also says whose
 * journal is whose. A newcomer founds nothing: it waits until the members that it calls have it on their list.
 */

import { hash } from "../../core/plain.ts";
import type { NodeId } from "../../core/protocol.ts";
import { boolean, struct, text } from "../../core/shape.ts";
import { docsPage } from "../docs-page.ts";
import type { Log } from "../log.ts";

export interface Identity {
  /** The ids of all members, as `groupText` writes them. */
  readonly group: string;
  /** Names the journal; empty without one. */
  readonly journal: string;
  /** Whether this journal was there when the group was founded: one that was not may stand for one that is lost. */
  readonly isFounded: boolean;
  /** The journal that it remembers of the node it speaks to; empty if none. */
  readonly remembers: string;
}

const MAX_GROUP_BYTES = 480;
export const MAX_JOURNAL_BYTES = 40;

export const identityShape = struct<Identity>({
  group: text(MAX_GROUP_BYTES),
  journal: text(MAX_JOURNAL_BYTES),
  isFounded: boolean,
  remembers: text(MAX_JOURNAL_BYTES),
});

/** The same for the same members, in whatever order they are listed; of many, the first are spelt out. */
export function groupText(ids: readonly NodeId[]): string {
  const all = [...ids].sort((a, b) => a - b).join(", ");
  if (all.length <= MAX_GROUP_BYTES) return all;
  return `${all.slice(0, MAX_GROUP_BYTES - 80)} …: ${ids.length} members with the hash ${hash([all])}`;
}

/**
 * What two nodes can differ in. `not-founded`: in nothing, but one of them has not met the whole group yet, or not all of it knows the
 * other's journal. `removed`: one of them has been taken from the list.
 */
export const differences = ["wrong-members", "lost-journal", "not-founded", "removed"] as const;
export type Difference = (typeof differences)[number];

/** Why two nodes have no link. */
export interface Objection {
  readonly reason: Difference;
  readonly detail: string;
}

/** What is for people to mend. */
export interface Disagreement extends Objection {
  readonly reason: "wrong-members" | "lost-journal";
  readonly detail: string;
  /** That the other one has. */
  readonly members: string;
}

/** What a node remembers of its group, in its journal. */
export interface Memory {
  /** Names this journal. */
  readonly journal: string;
  /** Of the other members, once the group is founded; null before. */
  readonly others: ReadonlyMap<NodeId, string> | null;
  /** Writes down the journals of the others, with which the group is founded; calls back when that is durable. */
  found(others: ReadonlyMap<NodeId, string>, then: () => void): void;
}

/** What the members have agreed on. */
export interface AgreedMembers {
  readonly founders: readonly NodeId[];
  /** `journal` is empty of one that has not called yet. */
  readonly members: readonly { readonly member: NodeId; readonly journal: string }[];
  readonly removed: readonly NodeId[];
}

export interface GroupIdentityOptions {
  readonly self: NodeId;
  /** The founders; of a newcomer: itself, and members that it knows of. */
  readonly members: readonly NodeId[];
  /** It is to come into a group that others have founded. */
  readonly isNewcomer?: boolean;
  /** Whether there are newcomers: not where who takes part is fixed. */
  readonly takesNewcomers?: boolean;
  readonly log: Log;
  /** Null of a node that keeps no journal: it has nothing to lose. */
  readonly memory?: Memory | null;
}

/** Of the nodes that are no members, so many are kept in mind: those that have called last. Anybody can make ids up. */
const MAX_STRANGERS = 128;

/** Who this node is for the others, and who they have said they are. */
export class GroupIdentity {
  readonly #options: GroupIdentityOptions;
  group: string;
  /** A node has been found to differ in what is for people to mend, or no longer does: then null. */
  onDisagreement: (node: NodeId, disagreement: Disagreement | null) => void = () => {};
  /** The group has been founded: links that were refused may open. */
  onFounded: () => void = () => {};
  /** A member that has not called before has, with this journal. */
  onFirstCall: (node: NodeId, journal: string) => void = () => {};
  /** This node has been taken from the list of members: another says so. */
  onRemoved: (by: NodeId) => void = () => {};
  readonly #disagreements = new Map<NodeId, Disagreement>();
  /** Those of them that are no members, and who has called last at the end. */
  readonly #strangers = new Set<NodeId>();
  /** Who has lines of its own in the log, of those that are no members. */
  readonly #namedStrangers = new Set<NodeId>();
  #peers: readonly NodeId[];
  #agreed: AgreedMembers | null = null;
  readonly #memory: Memory | null;
  /** The journals of the others, as they have said. */
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
    this.#foundIfMet(); // Alone it has nobody to meet.
  }

  /** Whether this node takes part: with a journal only once all members have met, or as a newcomer to those that have. */
  get isFounded(): boolean {
    return this.#memory === null || this.#others !== null || this.#options.isNewcomer === true;
  }

  /** The members have agreed on another list. */
  learn(agreed: AgreedMembers): void {
    this.#agreed = agreed;
    this.group = groupText(agreed.founders);
    this.#peers = agreed.members.map(({ member }) => member).filter((member) => member !== this.#options.self);
  }

  /** Whether it is another member, by the list that this node knows. */
  isPeer(node: NodeId): boolean {
    return this.#peers.includes(node);
  }

  /** Whether it is in the group, and has been told of this node's journal. */
  isRememberedBy({ group, isFounded, remembers }: Identity): boolean {
    const isOfGroup = group !== "" && (group === this.group || this.group === "");
    return isOfGroup && isFounded && remembers !== "" && remembers === this.#memory?.journal;
  }

  isRemoved(node: NodeId): boolean {
    return this.#agreed?.removed.includes(node) === true;
  }

  /** What this node remembers of that one; empty if nothing. */
  journalOf(node: NodeId): string {
    if (node === this.#options.self) return this.#memory?.journal ?? "";
    const listed = this.#agreed?.members.find(({ member }) => member === node)?.journal ?? "";
    return listed === "" ? (this.#others?.get(node) ?? "") : listed;
  }

  /** The members that have not been met, for which a new group waits; of a newcomer that is on no list yet, those that it calls. */
  get awaited(): readonly NodeId[] {
    if (this.#isOnNoList) return this.#peers;
    return this.isFounded ? [] : this.#peers.filter((peer) => !this.#met.has(peer));
  }

  /** Why there is no link between this node and some member, with the remedy; null if no hand-shake has found a reason. */
  get obstacle(): string | null {
    const found = [...this.#disagreements].filter(([node]) => this.isPeer(node)).map(([, each]) => each);
    const first = found.find(({ reason }) => reason === "lost-journal") ?? found[0];
    return first === undefined ? null : `${first.reason}: ${first.detail}`;
  }

  /** Says for which members a new group or a newcomer waits, if it does. A node that the log has told of an obstacle waits in vain. */
  sayAwaited(): void {
    if (this.awaited.length === 0 || this.obstacle !== null) return;
    const nodes = `${this.awaited.length === 1 ? "node" : "nodes"} ${this.awaited.join(", ")}`;
    this.#options.log.warn(
      this.#isOnNoList
        ? `waits for ${nodes} to have it on the list of a cluster that has been founded, as its folder was begun with existing: true (--existing). If this is the first start of all members, nobody founds a cluster so: stop them, empty their folders and start them without`
        : `waits for ${nodes}: a cluster's first start needs all its members, which remember each other's journals from then on; after that a majority is enough`,
    );
  }

  get #isOnNoList(): boolean {
    return this.#options.isNewcomer === true && this.#agreed === null;
  }

  /** What is said to that node. */
  toward(node: NodeId): Identity {
    const { group, isFounded } = this;
    const remembers = this.journalOf(node);
    return { group, journal: this.#memory?.journal ?? "", isFounded, remembers };
  }

  /** Another node has said who it is, in its hello or in its refusal: why there can be no link to it, or null. */
  judge(node: NodeId, theirs: Identity): Objection | null {
    if (this.isRemoved(node))
      return { reason: "removed", detail: `node ${node} has been removed from the members: it does not come back` };
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
      return { reason: "not-founded", detail: `the members are about to write down the journal of node ${node}` };
    }
    if (theirs.isFounded && this.isFounded) return null;
    this.#meet(node, theirs.journal); // With which the group may be founded, as soon as that is durable.
    return { reason: "not-founded", detail: "the members of this group have not all met yet, as they have to once" };
  }

  /** Who differs at present in what is for people to mend. */
  get disagreements(): ReadonlyMap<NodeId, Disagreement> {
    return this.#disagreements;
  }

  /** A newcomer is of the first group that takes it. */
  #adopt({ group, isFounded }: Identity): void {
    if (this.group === "" && isFounded) this.group = group;
  }

  /** By the list that this node knows. One that has been told of this node's journal was let in by others, and knows a later list. */
  #isFirstCall(node: NodeId): boolean {
    return this.#agreed !== null && this.isPeer(node) && this.journalOf(node) === "";
  }

  #keep(node: NodeId, found: Disagreement): void {
    const isMember = this.#peers.includes(node);
    if (!isMember) this.#makeRoomFor(node);
    if (this.#disagreements.get(node)?.detail === found.detail) return;
    this.#disagreements.set(node, found);
    const fields = { event: "peer-differs", peer: node, reason: found.reason };
    const whose = isMember || this.#namedStrangers.has(node) ? node : "of others"; // So that the log keeps its keys for members.
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
        `node ${node} has ${listText(group)}, and this node has ${this.group || NO_LIST}: ${this.#remedy(node, theirs)}`,
      );
    if (this.#memory === null || journal === "") return null;
    const remembered = this.journalOf(node);
    if (remembered !== "" && remembered !== journal)
      return differs(
        "lost-journal",
        `node ${node} has come with a new journal, and this node remembers another: it has lost what it promised, and must not take part. ${REMEDY}`,
      );
    if (remembers !== "" && remembers !== this.#memory.journal)
      return differs(
        "lost-journal",
        `this node has come with a new journal, and node ${node} remembers another: it has lost what it promised, and must not take part. ${REMEDY}`,
      );
    return null;
  }

  /** Of two lists. A folder may be emptied only if its member has not been in a group that was founded. */
  #remedy(node: NodeId, theirs: Identity): string {
    if (this.group === "") return "there is no link between them until that group has been founded";
    if (theirs.group === "") return "there is no link between them until it is on that list";
    const remedy = "there is no link between them until both are started with one list";
    if (this.#options.takesNewcomers !== true || this.isFounded === theirs.isFounded) return remedy;
    const newcomer = this.isFounded ? `node ${node}` : "this node";
    return `${remedy}. If ${newcomer} is to join a cluster that runs, empty its folder and start it with existing: true (--existing)`;
  }
}

const NO_LIST = "no list yet";
const listText = (group: string): string => (group === "" ? NO_LIST : `the members ${group}`);

/** What pages and programs are told of it. */
export interface Standing {
  /** Who differs, member or not: there is no link to it. */
  readonly refusals: readonly Refused[];
  /** The members that have not been met, for which a new group waits; of a newcomer that is on no list yet, those that it calls. */
  readonly awaited: readonly NodeId[];
}

export interface Refused extends Disagreement {
  readonly node: NodeId;
}

export const standingOf = ({ disagreements, awaited }: GroupIdentity): Standing => ({
  refusals: [...disagreements].map(([node, disagreement]) => ({ node, ...disagreement })),
  awaited,
});

const REMEDY =
  "Stop it, and put its folder back or, if that is gone, make it a new one with `coterie member replace`. " +
  `If the cluster was restored from a snapshot meanwhile, its folder is of the old one: ${docsPage("operate/recovery.md")}`;
