/** Overlapping groups: who is in which. A node may be in several, and multicasts to one of its own. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId, Vocabulary } from "../../../core/protocol.ts";
import { list, natural, type Shape, struct } from "../../../core/shape.ts";
import { settle } from "../../options.ts";
import { MAX_MEMBERS } from "../parts/layers.ts";

export interface GroupsOptions {
  /** The members of each group; a group's number is its place here. Left out: three nodes, any two of them a group. */
  groups: NodeId[][];
}

const defaults: GroupsOptions = {
  groups: [
    [0, 2],
    [1, 2],
    [0, 1],
  ],
};

/** What a multicast for overlapping groups offers: `send` names the group. */
export interface GroupMulticast extends Vocabulary {
  command: { type: "send"; payload: string; group: number };
  event: { type: "delivered"; from: NodeId; payload: string; id: string };
}

export const MAX_GROUPS = 1_000;

const shape: Shape<GroupsOptions> = struct<GroupsOptions>({ groups: list(list(natural, MAX_MEMBERS), MAX_GROUPS) });

/** The groups that were given, with ascending members. @throws UsageError where there are none, or a member is named twice. */
export function groupsGiven(given: Partial<GroupsOptions> | undefined, owner: string): NodeId[][] {
  const { groups } = settle(defaults, shape, given, owner);
  const areSets = groups.length > 0 && groups.every((members) => new Set(members).size === members.length);
  if (!areSets)
    throw new UsageError("bad-option", unexpected(`${owner}.groups`, "groups, each of different nodes", groups));
  return groups.map((members) => members.toSorted((a, b) => a - b));
}

/** Groups are closed: who is in none of that number does not multicast to it. */
export const isMember = (groups: readonly (readonly NodeId[])[], group: number, node: NodeId): boolean =>
  groups[group]?.includes(node) === true;
