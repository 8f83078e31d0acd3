/**
 * Groups by name: what a session in one says is told at every replica, in the order of the log, and so is who is in it: views. Of what
 * is said nothing is kept. A session that enters anew is another member of the group.
 */
import { type GroupOperation, isClient, type Result, refuse, type SessionId } from "./operations.ts";
import { type Applying, type Data, type Group, nextRevision, type Session } from "./state.ts";
import { enter, lookUp, strike } from "./table.ts";

type Say = Extract<GroupOperation, { type: "say" }>;

export function applyToGroups(on: Applying, session: Session, operation: GroupOperation): Result {
  const { name } = operation;
  switch (operation.type) {
    case "enterGroup":
      return enterGroup(on, session, name, operation.wait);
    case "leaveGroup":
      leave(on, name, session.id);
      return { type: "done" };
    case "say":
      return say(on, session, operation);
  }
}

function say({ data, tell }: Applying, { id, member }: Session, operation: Say): Result {
  const { name, wait, number, to, text } = operation;
  const own = groupNamed(data, name)?.members.find((each) => each.session === id && each.wait === wait);
  if (own === undefined) return refuse("not-held", `this session is not in the group ${name}, or has entered it anew`);
  if (number > 0 && number !== own.spoken + 1)
    return refuse(
      "bad-operation",
      `expected word ${own.spoken + 1} of this session in the group ${name}, got ${number}`,
    );
  own.spoken = Math.max(own.spoken, number);
  tell({ type: "said", name, from: member, to, text, revision: nextRevision(data) });
  return { type: "done" };
}

function enterGroup(on: Applying, { id, member }: Session, name: string, wait: number): Result {
  const { data, limits } = on;
  if (isClient(member)) return refuse("bad-operation", "groups are of members: a client is in none");
  const members = (groupNamed(data, name)?.members ?? []).filter(({ session }) => session !== id);
  if (members.length >= limits.maxWaiting)
    return refuse("too-many", `${limits.maxWaiting} are in the group ${name} already`);
  if (members.length === 0 && data.groups.keys.length >= limits.maxNames)
    return refuse("too-many", `there are ${limits.maxNames} groups already`);
  change(on, name, [...members, { session: id, member, wait, spoken: 0 }]);
  return { type: "done" };
}

/** The next view. A group with nobody in it is forgotten. */
function change({ data, tell }: Applying, name: string, members: Group["members"]): void {
  if (members.length === 0) strike(data.groups, name);
  else enter(data.groups, name, { members });
  tell({ type: "grouped", name, view: nextRevision(data), members: members.map((member) => ({ ...member })) });
}

const groupNamed = ({ groups }: Data, name: string): Group | null => lookUp(groups, name);

function leave(on: Applying, name: string, id: SessionId): void {
  const members = groupNamed(on.data, name)?.members ?? [];
  const others = members.filter(({ session }) => session !== id);
  if (others.length < members.length) change(on, name, others);
}

export function leaveGroups(on: Applying, session: SessionId): void {
  for (const name of [...on.data.groups.keys]) leave(on, name, session);
}

export const isInGroup = ({ groups }: Data, id: SessionId): boolean =>
  groups.values.some(({ members }) => members.some(({ session }) => session === id));
