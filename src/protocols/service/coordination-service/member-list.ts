/**
 * The member list, which is part of the replicated state. The first change records the founders. Later changes add,
 * remove or change members. The list may differ from the log's configuration: a new member is listed before its vote
 * counts, and a leaving member stays listed until no decision needs its vote.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { MAX_LISTED } from "../../../core/quorums.ts";
import type { Members } from "../../consensus/family/replicated-log.ts";
import type { Founder, ListedMember, MemberList, MemberOperation, MemberStep, Wish } from "./member-words.ts";
import { MAX_REMOVED } from "./member-words.ts";
import { isClient, type Refusal, type Result, refuse } from "./operations.ts";
import { type Applying, type Data, nextRevision } from "./state.ts";

/** Returns the member's entry on the list. Null if the member is not listed. */
export const listed = ({ members }: MemberList, id: NodeId): ListedMember | null =>
  members.find(({ member }) => member === id) ?? null;

/** Returns the configuration that the log should have. */
function wanted({ members }: MemberList): Members {
  const those = (wish: Wish): NodeId[] => members.flatMap((each) => (each.wish === wish ? [each.member] : []));
  return { voters: those("voter"), learners: those("learner") };
}

/**
 * Returns the next configuration to request from the log. Null if the log already has the desired configuration. A new
 * member first becomes a learner, so that the leader can determine whether it is reachable and how far behind it is. A
 * member that was removed before it became a learner also becomes one first, and leaves the list when a later
 * configuration excludes it.
 */
export function nextConfiguration(of: MemberList): Members | null {
  const { voters, learners } = of;
  const goal = wanted(of);
  const present = [...voters, ...learners];
  const newcomers = of.members.flatMap(({ member }) => (present.includes(member) ? [] : [member]));
  if (newcomers.length > 0) return { voters, learners: ascending([...learners, ...newcomers]) };
  const isReached = isSame(goal.voters, voters) && isSame(goal.learners, learners);
  return isReached ? null : goal;
}

const ascending = (nodes: readonly NodeId[]): NodeId[] => nodes.toSorted((a, b) => a - b);
const isSame = (a: readonly NodeId[], b: readonly NodeId[]): boolean =>
  a.length === b.length && a.every((node) => b.includes(node));

/** Returns whether the voters are still being changed. */
const isChanging = (of: MemberList): boolean => !isSame(wanted(of).voters, of.voters);

export function applyToMembers(on: Applying, operation: MemberOperation): Result {
  const { data } = on;
  if (operation.type === "foundMembers") return found(on, operation.members);
  if (data.members === null) return refuse("bad-operation", "the member list is not in the log yet");
  const changed = copyOf(data.members); // If the change is refused, the list stays unchanged.
  const refusal = operation.type === "changeMembers" ? changeAll(changed, operation.steps) : change(changed, operation);
  if (refusal !== null) return refusal;
  data.members = changed;
  tell(on, changed);
  return { type: "done" };
}

function found(on: Applying, members: readonly Founder[]): Result {
  const { data } = on;
  if (data.members !== null) return { type: "done" };
  const founders = ascending(members.map(({ member }) => member));
  if (founders.length === 0 || new Set(founders).size < founders.length)
    return refuse("bad-operation", "expected a list of one or more members without duplicates");
  data.members = {
    revision: 0,
    founders,
    members: members
      .map((member): ListedMember => ({ ...member, wish: "voter", replaces: null }))
      .sort((a, b) => a.member - b.member),
    removed: [],
    voters: founders,
    learners: [],
  };
  tell(on, data.members);
  return { type: "done" };
}

function tell({ data, tell: emit }: Applying, of: MemberList): void {
  of.revision = nextRevision(data);
  emit({ type: "members", list: copyOf(of) });
}

/** Returns a copy, because the list itself keeps changing. */
export const copyOf = (of: MemberList): MemberList => JSON.parse(JSON.stringify(of)) as MemberList;

function change(of: MemberList, operation: Exclude<MemberOperation, { type: "foundMembers" | "changeMembers" }>) {
  switch (operation.type) {
    case "nameJournal":
    case "moveMember": {
      const member = listed(of, operation.member);
      if (member === null) return unknownMember(of, operation.member);
      if (operation.type === "moveMember")
        return isTaken(of, operation.address, [member.member]) ?? move(member, operation.address);
      if (member.journal === "") member.journal = operation.journal;
      return null;
    }
    default:
      return changeAll(of, [operation]);
  }
}

/** Applies the steps in order. The voters change from the old set to the new one in a single step. */
function changeAll(of: MemberList, steps: readonly MemberStep[]): Refusal | null {
  const named = steps.flatMap((each) =>
    each.type === "addMember" && each.replaces !== null ? [each.member, each.replaces] : [each.member],
  );
  const twice = named.find((id, index) => named.indexOf(id) !== index);
  if (twice !== undefined) return refuse("bad-operation", `expected each member once in a change, got ${twice} twice`);
  const underWay = whileChanging(of);
  for (const each of steps) {
    const refusal = step(of, each, underWay);
    if (refusal !== null) return refusal;
  }
  return wanted(of).voters.length > 0 ? null : lastVoter(of);
}

function lastVoter({ voters }: MemberList): Refusal {
  const those =
    voters.length === 1
      ? `member ${voters[0]} is the only voter: without it`
      : `members ${voters.join(", ")} are the only voters: without them`;
  return refuse("last-voter", `${those}, the cluster cannot decide anything`);
}

function step(of: MemberList, operation: MemberStep, underWay: Refusal | null): Refusal | null {
  if (operation.type === "addMember") return add(of, operation, underWay);
  const member = listed(of, operation.member);
  if (member === null) return unknownMember(of, operation.member);
  if (operation.type === "removeMember") return remove(of, member, underWay);
  if (member.wish === "voter") return null;
  if (member.wish === "leaving") return refuse("change-under-way", `member ${member.member} is being removed`);
  return underWay ?? wish(member, "voter");
}

function move(member: ListedMember, to: string): null {
  member.address = to;
  return null;
}

function wish(member: ListedMember, to: Wish): null {
  member.wish = to;
  return null;
}

function add(
  of: MemberList,
  { member, address: at, isVoter, replaces }: Extract<MemberStep, { type: "addMember" }>,
  underWay: Refusal | null,
): Refusal | null {
  if (isClient(member)) return refuse("bad-operation", `expected the id of a member, got the client id ${member}`);
  if (listed(of, member) !== null) return refuse("member-exists", `there is already a member ${member}`);
  if (of.removed.includes(member))
    return refuse("member-exists", `member ${member} has been removed, and ids cannot be reused: choose another id`);
  if (of.members.length >= MAX_LISTED) return refuse("too-many", `there are already ${MAX_LISTED} members`);
  const old = replaces === null ? null : listed(of, replaces);
  if (replaces !== null && old === null) return unknownMember(of, replaces);
  const refusal = isTaken(of, at, replaces === null ? [] : [replaces]) ?? (isVoter ? underWay : null);
  if (refusal !== null) return refusal;
  if (old !== null) old.wish = "leaving";
  of.members.push({ member, address: at, journal: "", wish: isVoter ? "voter" : "learner", replaces });
  of.members.sort((a, b) => a.member - b.member);
  return null;
}

/**
 * Removes a member. A member whose vote does not count yet can be removed at any time, which cancels the change that
 * added it. Voters that would have left in that change then stay, so that the cluster does not become smaller than
 * intended.
 */
function remove(of: MemberList, member: ListedMember, underWay: Refusal | null): Refusal | null {
  if (member.wish === "leaving") return null;
  if (of.removed.length >= MAX_REMOVED) return refuse("too-many", `${MAX_REMOVED} members have been removed already`);
  if (of.voters.includes(member.member)) return underWay ?? wish(member, "leaving");
  if (member.wish === "voter")
    for (const each of of.members) if (each.wish === "leaving" && of.voters.includes(each.member)) each.wish = "voter";
  return wish(member, "leaving");
}

function whileChanging(of: MemberList): Refusal | null {
  if (!isChanging(of)) return null;
  const goal = wanted(of).voters;
  const coming = goal.filter((node) => !of.voters.includes(node));
  const going = of.voters.filter((node) => !goal.includes(node));
  const said = [
    ...(coming.length > 0 ? [`waits for member ${coming.join(", ")} to be up to date`] : []),
    ...(going.length > 0 ? [`removes member ${going.join(", ")}`] : []),
  ];
  return refuse(
    "change-under-way",
    `another change ${said.join(" and ")}: wait for it, or remove the new member to cancel it`,
  );
}

const unknownMember = (of: MemberList, id: NodeId): Refusal =>
  refuse(
    "unknown-member",
    `expected one of the members ${of.members.map(({ member }) => member).join(", ")}, got ${id}`,
  );

function isTaken(of: MemberList, at: string, but: readonly NodeId[]): Refusal | null {
  const other = of.members.find(({ member, address: its }) => its === at && !but.includes(member));
  return other === undefined ? null : refuse("member-exists", `member ${other.member} has the address ${at}`);
}

/** Handles a new log configuration. A leaving member that is no longer part of it is deleted from the list. */
export function noteConfiguration(on: Applying, { voters, learners }: Members): void {
  const { members: of } = on.data;
  if (of === null) return; // The members have never changed.
  const present = [...voters, ...learners];
  const gone = of.members.filter(({ member, wish: its }) => its === "leaving" && !present.includes(member));
  if (gone.length === 0 && isSame(voters, of.voters) && isSame(learners, of.learners)) return; // Repeated after a restart.
  of.voters = ascending(voters);
  of.learners = ascending(learners);
  of.members = of.members.filter((member) => !gone.includes(member));
  of.removed.push(...gone.map(({ member }) => member));
  for (const member of of.members)
    if (member.replaces !== null && of.removed.includes(member.replaces)) member.replaces = null;
  tell(on, of);
}

/** Returns the member list. Null if it has never changed. */
export const membersIn = ({ members }: Data): MemberList | null => members;
