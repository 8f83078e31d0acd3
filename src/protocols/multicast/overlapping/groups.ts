/** Overlapping groups: who is in which. A node may be in several, and multicasts to one of its own. */
import type { NodeId, Vocabulary } from "../../../core/protocol.ts";
import { list, natural } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable } from "../../options.ts";
import { MAX_MEMBERS } from "../parts/layers.ts";

/** What a multicast for overlapping groups offers: `send` names the group. */
export interface GroupMulticast extends Vocabulary {
  command: { type: "send"; payload: string; group: number };
  event: { type: "delivered"; from: NodeId; payload: string; id: string };
}

export const MAX_GROUPS = 1_000;

const groupsOptions = (owner: string) =>
  optionTable(
    owner,
    {
      groups: option(
        list(list(natural, MAX_MEMBERS), MAX_GROUPS),
        [
          [0, 2],
          [1, 2],
          [0, 1],
        ],
        "the members of each group; the number of a group is its index",
      ),
    },
    ({ groups }, refuse) => {
      const areSets = groups.length > 0 && groups.every((members) => new Set(members).size === members.length);
      if (!areSets) refuse("groups", "groups, each of different nodes");
    },
  );

export type GroupsOptions = OptionsOf<ReturnType<typeof groupsOptions>>;

/** The groups that were given, with ascending members. @throws UsageError where there are none, or a member is named twice. */
export function groupsGiven(given: Partial<GroupsOptions> | undefined, owner: string): NodeId[][] {
  const { groups } = groupsOptions(owner).settle(given);
  return groups.map((members) => members.toSorted((a, b) => a - b));
}

/** Groups are closed: who is in none of that number does not multicast to it. */
export const isMember = (groups: readonly (readonly NodeId[])[], group: number, node: NodeId): boolean =>
  groups[group]?.includes(node) === true;
