/** The types for the member list: its content and its operations. */
import type { NodeId } from "../../../core/protocol.ts";
import { MAX_LISTED } from "../../../core/quorums.ts";
import { boolean, list, natural, nullable, oneOf, type Shape, struct, text, variants } from "../../../core/shape.ts";

/** The member list. */
export interface MemberList {
  /** The revision of the last change to the list. */
  revision: number;
  /** The founders of the cluster. They identify it permanently, regardless of its current members. */
  founders: NodeId[];
  /** The members, in ascending order of id. */
  members: ListedMember[];
  /** The ids of removed members, which are never reused. */
  removed: NodeId[];
  /** The voters in the log's current configuration. */
  voters: NodeId[];
  learners: NodeId[];
}

/** A member on the list. */
export interface ListedMember {
  member: NodeId;
  /** The address (`host:port`) at which other members can reach this member. */
  address: string;
  /** The id of the member's journal. Empty until the member has connected for the first time. */
  journal: string;
  /** The role that the member should have. */
  wish: Wish;
  /** The member that leaves when this one gets its vote. */
  replaces: NodeId | null;
}

/** The role that a member should have. */
export type Wish = "voter" | "learner" | "leaving";

/** An operation on the member list. */
export type MemberOperation =
  /** Records the list as it was before its first change. Has no effect if there already is a list. */
  | { type: "foundMembers"; members: Founder[] }
  /** Records the journal of a member that has connected. From then on, no other journal is accepted for that member. */
  | { type: "nameJournal"; member: NodeId; journal: string }
  | { type: "moveMember"; member: NodeId; address: string }
  | MemberStep
  /** Applies all steps or none. The voters change from the old set to the new one in a single step. */
  | { type: "changeMembers"; steps: MemberStep[] };

/** One step of a membership change. */
export type MemberStep =
  | { type: "addMember"; member: NodeId; address: string; isVoter: boolean; replaces: NodeId | null }
  | { type: "promoteMember"; member: NodeId }
  | { type: "removeMember"; member: NodeId };

/** A founder of the cluster, as recorded in the first list. */
export type Founder = Pick<ListedMember, "member" | "address" | "journal">;

/** The maximum number of removed ids. */
export const MAX_REMOVED = 10_000;
/**
 * The maximum number of steps in one change. A change of this size fits in one log entry, even with the longest
 * addresses.
 */
export const MAX_STEPS = 64;
const MAX_ADDRESS_BYTES = 300;
const MAX_JOURNAL_BYTES = 40;

const address = text(MAX_ADDRESS_BYTES);
const journal = text(MAX_JOURNAL_BYTES);

const stepShapes = {
  addMember: { member: natural, address, isVoter: boolean, replaces: nullable(natural) },
  promoteMember: { member: natural },
  removeMember: { member: natural },
} as const;

export const memberOperationShapes = {
  foundMembers: { members: list(struct<Founder>({ member: natural, address, journal }), MAX_LISTED) },
  ...stepShapes,
  changeMembers: { steps: list(variants<MemberStep>(stepShapes), MAX_STEPS) },
  nameJournal: { member: natural, journal },
  moveMember: { member: natural, address },
} as const;

const ids = list(natural, MAX_LISTED);
export const memberListShape: Shape<MemberList> = struct<MemberList>({
  revision: natural,
  founders: ids,
  members: list(
    struct<ListedMember>({
      member: natural,
      address,
      journal,
      wish: oneOf("voter", "learner", "leaving"),
      replaces: nullable(natural),
    }),
    MAX_LISTED,
  ),
  removed: list(natural, MAX_REMOVED),
  voters: ids,
  learners: ids,
});
