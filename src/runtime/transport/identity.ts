/**
 * What a node says of itself in the hand-shake besides its address: which members it counts as its group, and which journal
 * keeps its promises. Two nodes that differ in that must not take part in one decision, so they have no link at all, and
 * each learns from the hand-shake what the other one has.
 */
import { hash } from "../../core/plain.ts";
import type { NodeId } from "../../core/protocol.ts";
import { boolean, struct, text } from "../../core/shape.ts";
import type { Log } from "../log.ts";

export interface Identity {
  /** The ids of all members, as `groupText` writes them. */
  readonly group: string;
  /** Names the journal; empty without one. */
  readonly journal: string;
  /** Whether this journal has been in the group since all its members met: one that is new may stand for one that is lost. */
  readonly isFounded: boolean;
  /** The journal that it remembers of the node it speaks to; empty if none. */
  readonly remembers: string;
}

const MAX_GROUP_BYTES = 480;
const MAX_JOURNAL_BYTES = 40;

export const identityShape = struct<Identity>({
  group: text(MAX_GROUP_BYTES),
  journal: text(MAX_JOURNAL_BYTES),
  isFounded: boolean,
  remembers: text(MAX_JOURNAL_BYTES),
});

/** What one of an older version says, which is refused anyhow. */
export const NOBODY: Identity = { group: "", journal: "", isFounded: false, remembers: "" };

/** The same for the same members, in whatever order they are listed; of many, the first are spelt out. */
function groupText(ids: readonly NodeId[]): string {
  const all = [...ids].sort((a, b) => a - b).join(", ");
  if (all.length <= MAX_GROUP_BYTES) return all;
  return `${all.slice(0, MAX_GROUP_BYTES - 80)} …: ${ids.length} members with the hash ${hash([all])}`;
}

/** What two nodes can differ in. */
export const differences = ["wrong-members"] as const;
export type Difference = (typeof differences)[number];

/** Why two nodes have no link. */
export interface Disagreement {
  readonly reason: Difference;
  readonly detail: string;
  /** The members that the other one has. */
  readonly members: string;
}

export interface GroupIdentityOptions {
  readonly members: readonly NodeId[];
  readonly log: Log;
  /** A node has been found to differ, or no longer does: then null. */
  readonly onDisagreement?: (node: NodeId, disagreement: Disagreement | null) => void;
}

/** More nodes than this that are no members are not kept in mind. */
const MAX_STRANGERS = 128;

/** Who this node is for the others, and who they have said they are. */
export class GroupIdentity {
  readonly group: string;
  readonly #disagreements = new Map<NodeId, Disagreement>();

  constructor(private readonly options: GroupIdentityOptions) {
    this.group = groupText(options.members);
  }

  /** What is said to that node. */
  toward(_node: NodeId): Identity {
    return { group: this.group, journal: "", isFounded: false, remembers: "" };
  }

  /** Another node has said who it is, in its hello or in its refusal: why there can be no link to it, or null. */
  judge(node: NodeId, theirs: Identity): Disagreement | null {
    const found = this.#difference(node, theirs);
    const known = this.#disagreements.get(node) ?? null;
    if (found === null) this.#disagreements.delete(node);
    else if (known !== null || this.#disagreements.size < MAX_STRANGERS) this.#disagreements.set(node, found);
    if (found?.detail === known?.detail) return found;
    if (found !== null) this.options.log.once(`${found.reason} ${node}`, `${found.reason}: ${found.detail}`);
    this.options.onDisagreement?.(node, found);
    return found;
  }

  /** Who differs at present. */
  get disagreements(): ReadonlyMap<NodeId, Disagreement> {
    return this.#disagreements;
  }

  #difference(node: NodeId, { group }: Identity): Disagreement | null {
    if (group === this.group) return null;
    const detail = `node ${node} has the members ${group}, and this node has ${this.group}: there is no link between them until both are started with one list`;
    return { reason: "wrong-members", detail, members: group };
  }
}
