/** Types of the member list: its content and its operations. */
import type { NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, type Shape, struct, text, variants } from "../../../core/shape.ts";

export interface MemberList {
  /** The revision of its last change. */
  revision: number;
  /** The founders of the cluster, which identify it for good, no matter who its members are. */
  founders: NodeId[];
  /** Ascending by id. */
  members: ListedMember[];
  /** Ids of removed members, which are never reused. */
  removed: NodeId[];
  /** The configuration of the log that is in effect. */
  voters: NodeId[];
  learners: NodeId[];
}

export interface ListedMember {
  member: NodeId;
  /** The address where other members reach it, `host:port`. */
  address: string;
  /** Identifies its journal; empty until it has connected for the first time. */
  journal: string;
  /** The role it should have. */
  wish: Wish;
  /** The member that leaves when this one gets its vote. */
  replaces: NodeId | null;
}

export type Wish = "voter" | "learner" | "leaving";

export type MemberOperation =
  /** Records the list as it was before its first change. It has no effect once there is a list. */
  | { type: "foundMembers"; members: Founder[] }
  /** The member has connected with this journal. No other journal is accepted for it from then on. */
  | { type: "nameJournal"; member: NodeId; journal: string }
  | { type: "moveMember"; member: NodeId; address: string }
  | MemberStep
  /** Applies all steps or none. The voters change at once, from the old set to the new one. */
  | { type: "changeMembers"; steps: MemberStep[] };

/** A change of the membership. */
export type MemberStep =
  | { type: "addMember"; member: NodeId; address: string; isVoter: boolean; replaces: NodeId | null }
  | { type: "promoteMember"; member: NodeId }
  | { type: "removeMember"; member: NodeId };

export type Founder = Pick<ListedMember, "member" | "address" | "journal">;

export const MAX_LISTED = 64;
export const MAX_REMOVED = 10_000;
/** The most steps in one change: even with the longest addresses, it fits in one log entry. */
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
