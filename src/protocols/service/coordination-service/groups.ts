/**
 * Named groups of sessions. Every replica emits the messages to a group and the group's views in log order. Messages
 * are not stored. A session that enters a group again is a new member.
 */

import { enter, keysOf, lookUp, strike, valuesOf } from "../keyspace/table.ts";
import { type GroupMember, type GroupOperation, isClient, type Result, refuse, type SessionId } from "./operations.ts";
import { type Applying, type Data, type Group, nextRevision, type Session } from "./state.ts";

type Of<T extends GroupOperation["type"]> = Extract<GroupOperation, { type: T }>;

export function applyToGroups(on: Applying, session: Session, operation: GroupOperation): Result {
  switch (operation.type) {
    case "enterGroup":
      return enterGroup(on, session, operation);
    case "leaveGroup":
      leave(on, operation.name, session.id);
      return { type: "done" };
    case "expelFromGroup":
      return expel(on, session, operation);
    case "say":
      return say(on, session, operation);
  }
}

function say({ data, tell }: Applying, session: Session, { name, wait, number, to, text }: Of<"say">): Result {
  const own = ownIn(data, session, name, wait);
  if (own === undefined) return notIn(name);
  if (number > 0 && number !== own.spoken + 1)
    return refuse(
      "bad-operation",
      `expected message ${own.spoken + 1} of this session in the group ${name}, got ${number}`,
    );
  own.spoken = Math.max(own.spoken, number);
  tell({ type: "said", name, from: session.member, to, text, revision: nextRevision(data) });
  return { type: "done" };
}

/** Adds a session to a group. A node has only one session at a time, so it is in a group at most once. */
function enterGroup(on: Applying, { id, member }: Session, { name, wait, setting }: Of<"enterGroup">): Result {
  const { data, limits } = on;
  if (isClient(member)) return refuse("bad-operation", "expected a member: clients cannot join groups");
  const group = groupNamed(data, name);
  const others = (group?.members ?? []).filter((each) => each.member !== member);
  if (group !== null && others.length > 0 && group.setting !== setting)
    return refuse("in-use", `the group ${name} is in use with the setting ${group.setting}, not ${setting}`);
  if (others.length >= limits.maxWaiting)
    return refuse("too-many", `${limits.maxWaiting} members are already in the group ${name}`);
  if (group === null && data.groups.size >= limits.maxNames)
    return refuse("too-many", `there are already ${limits.maxNames} groups`);
  change(on, name, { setting, members: [...others, { session: id, member, wait, spoken: 0 }] });
  return { type: "done" };
}

function expel(on: Applying, by: Session, { name, wait, session, sessionWait }: Of<"expelFromGroup">): Result {
  if (ownIn(on.data, by, name, wait) === undefined) return notIn(name);
  remove(on, name, (member) => member.session === session && member.wait === sessionWait);
  return { type: "done" };
}

/** Begins the next view. Deletes the group if it has no members left. */
function change({ data, tell }: Applying, name: string, group: Group): void {
  const { members } = group;
  if (members.length === 0) strike(data.groups, name);
  else enter(data.groups, name, group);
  tell({ type: "grouped", name, view: nextRevision(data), members: members.map((member) => ({ ...member })) });
}

const groupNamed = ({ groups }: Data, name: string): Group | null => lookUp(groups, name);

const ownIn = (data: Data, { id }: Session, name: string, wait: number): GroupMember | undefined =>
  groupNamed(data, name)?.members.find((each) => each.session === id && each.wait === wait);

const notIn = (name: string): Result =>
  refuse("not-held", `this session is not in the group ${name}, or has entered it again`);

function remove(on: Applying, name: string, isGone: (member: GroupMember) => boolean): void {
  const group = groupNamed(on.data, name);
  if (group?.members.some(isGone) === true)
    change(on, name, { ...group, members: group.members.filter((member) => !isGone(member)) });
}

const leave = (on: Applying, name: string, id: SessionId): void => remove(on, name, ({ session }) => session === id);

/** Removes an ended session from all groups. */
export function leaveGroups(on: Applying, session: SessionId): void {
  for (const name of keysOf(on.data.groups)) leave(on, name, session);
}

/** Returns whether the session is a member of any group. */
export const isInGroup = ({ groups }: Data, id: SessionId): boolean =>
  valuesOf(groups).some(({ members }) => members.some(({ session }) => session === id));
