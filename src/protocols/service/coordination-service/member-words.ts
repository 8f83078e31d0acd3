/** The words of the list of members: what it holds, and how it is changed. */
import type { NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, type Shape, struct, text, variants } from "../../../core/shape.ts";

export interface MemberList {
  /** Of its last change. */
  revision: number;
  /** Who founded the cluster: its name for good, whoever is in it. */
  founders: NodeId[];
  /** Ascending by their ids. */
  members: ListedMember[];
  /** Ids that have been taken from the list. They are not given again. */
  removed: NodeId[];
  /** The configuration of the log that is in effect. */
  voters: NodeId[];
  learners: NodeId[];
}

export interface ListedMember {
  member: NodeId;
  /** Where the others reach it, `host:port`. */
  address: string;
  /** Names its journal; empty until it has called for the first time. */
  journal: string;
  /** What it is to be. */
  wish: Wish;
  /** Who leaves as this one gets its vote. */
  replaces: NodeId | null;
}

export type Wish = "voter" | "learner" | "leaving";

export type MemberOperation =
  /** The list as it was before its first change. It changes nothing once there is one. */
  | { type: "foundMembers"; members: Founder[] }
  /** It has called, with this journal. Nobody else's counts from then on. */
  | { type: "nameJournal"; member: NodeId; journal: string }
  | { type: "moveMember"; member: NodeId; address: string }
  | MemberStep
  /** All of them or none. Who votes changes in one step: from those before to those after. */
  | { type: "changeMembers"; steps: MemberStep[] };

/** A change of who takes part. */
export type MemberStep =
  | { type: "addMember"; member: NodeId; address: string; isVoter: boolean; replaces: NodeId | null }
  | { type: "promoteMember"; member: NodeId }
  | { type: "removeMember"; member: NodeId };

export type Founder = Pick<ListedMember, "member" | "address" | "journal">;

export const MAX_LISTED = 64;
export const MAX_REMOVED = 10_000;
/** In one change: with addresses as long as they may be, it is one entry of the log. */
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
