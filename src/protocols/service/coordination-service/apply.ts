/** The deterministic state machine, which applies log entries to the data and answers queries from the data. */
import type { NodeId } from "../../../core/protocol.ts";
import { hasShape } from "../../../core/shape.ts";
import { applyToBarrier, arrivalIn } from "./barriers.ts";
import { applyToGrants, holdersOf } from "./grants.ts";
import { applyToGroups } from "./groups.ts";
import { applyToCounter, applyToKeyspace, applyToMaps, changesAfter, count, range, readKeys, stored } from "./keys.ts";
import { takePart } from "./large-operations.ts";
import { ask, execute, type MachineDefinitions } from "./machines.ts";
import { applyToMembers, membersIn } from "./member-list.ts";
import {
  type Answer,
  isClient,
  MAX_RANGE,
  type Operation,
  type Proposal,
  proposalShape,
  type Query,
  type Result,
  refuse,
  type SessionOperation,
} from "./operations.ts";
import { applyToQueue, backlogOf } from "./queues.ts";
import {
  dropAcknowledged,
  endSession,
  expireSession,
  isBusy,
  isForgotten,
  openSession,
  sessionOf,
} from "./sessions.ts";
import type { Applying, Session } from "./state.ts";

type Batch = Extract<Proposal, { type: "operations" }>;

/**
 * Returns the proposal in a log entry. Null if this version does not understand the entry; the entry then has no
 * effect.
 */
export function readProposal(text: string): Proposal | null {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return null;
  }
  return hasShape(proposalShape, read) ? (read as Proposal) : null;
}

/** The session affected by a log entry, as it was after the entry was applied, and whether it has ended. */
export interface Applied {
  member: NodeId;
  life: number;
  session: Session | null;
  isOver: boolean;
}

/** Applies a log entry. @param index the entry's index in the log @returns null if no session is affected */
export function applyProposal(
  on: Applying,
  machines: MachineDefinitions,
  member: NodeId,
  index: number,
  proposal: Proposal,
): Applied | null {
  if (proposal.type === "operations") return applyBatch(on, machines, member, index, proposal);
  const session = expireSession(on, proposal.session, proposal.seen);
  return session === null ? null : { member: session.member, life: session.life, session, isOver: true };
}

function applyBatch(on: Applying, machines: MachineDefinitions, member: NodeId, index: number, batch: Batch): Applied {
  const { data } = on;
  const { life, first, acknowledged, operations } = batch;
  let session = sessionOf(data, member);
  if (session?.life !== life) {
    if (life <= (data.lives[member] ?? 0) || isForgotten(data, member))
      return { member, life, session: null, isOver: true };
    const [opening] = operations;
    // The operation that opens this session is not in the log. The member proposes it again, followed by these
    // operations.
    if (first !== 1 || opening?.type !== "begin") return { member, life, session: null, isOver: false };
    if (!isClient(member)) data.version = Math.max(data.version, opening.version);
    session = openSession(on, member, life, opening.ttlMs, index);
  }
  session.seen = index;
  dropAcknowledged(session, acknowledged);
  for (const [at, operation] of operations.entries()) {
    if (first + at !== session.applied + 1) continue; // The operation has already been applied, or comes after a gap.
    const result = applyOperation(on, machines, session, operation);
    session.applied += 1;
    session.replies.push({ revision: data.keyspace.revision, result });
    if (operation.type === "close" && result.type === "done") return { member, life, session, isOver: true };
  }
  return { member, life, session, isOver: false };
}

function applyOperation(
  on: Applying,
  machines: MachineDefinitions,
  session: Session,
  operation: Operation | SessionOperation,
): Result {
  switch (operation.type) {
    case "begin":
      return { type: "done" };
    case "close":
      if (operation.ifIdle && isBusy(on.data, session.id)) return refuse("in-use", "it holds or waits for something");
      endSession(on, session, "closed");
      return { type: "done" };
    case "part": {
      const taken = takePart(on, session, operation);
      return "whole" in taken ? applyOperation(on, machines, session, taken.whole) : taken.result;
    }
    case "put":
    case "delete":
    case "transaction":
      return applyToMaps(on, session.id, operation);
    case "keys":
      return applyToKeyspace(on, operation);
    case "add":
    case "set":
      return applyToCounter(on, operation);
    case "acquire":
    case "release":
    case "withdraw":
      return applyToGrants(on, session.id, operation);
    case "arrive":
    case "leave":
      return applyToBarrier(on, session.id, operation);
    case "enqueue":
    case "take":
    case "stopTaking":
    case "finish":
    case "giveBack":
      return applyToQueue(on, session.id, operation);
    case "enterGroup":
    case "leaveGroup":
    case "expelFromGroup":
    case "say":
      return applyToGroups(on, session, operation);
    case "execute":
      return execute(on, machines, operation);
    case "foundMembers":
    case "addMember":
    case "nameJournal":
    case "promoteMember":
    case "removeMember":
    case "moveMember":
    case "changeMembers":
      return applyToMembers(on, operation);
  }
}

/** Answers a query using the data. */
export function answerTo(on: Pick<Applying, "data" | "limits">, machines: MachineDefinitions, query: Query): Answer {
  const { data } = on;
  switch (query.type) {
    case "get":
      return { type: "found", entry: stored(data, query.map, query.key) };
    case "range":
      return range(data, query.map, query.from, query.to, Math.min(query.limit, MAX_RANGE));
    case "changes":
      return changesAfter(data, query.map, query.after);
    case "readKeys":
      return readKeys(data, query.question);
    case "count":
      return count(data, query.name);
    case "holders":
      return holdersOf(data, query.name);
    case "backlog":
      return backlogOf(data, query.name);
    case "arrival":
      return arrivalIn(data, query.name, query.session, query.wait);
    case "sessions":
      return { type: "sessions", sessions: data.sessions.map(({ id, member }) => ({ session: id, member })) };
    case "members":
      return { type: "members", list: membersIn(data) };
    case "ask":
      return ask(on, machines, query.machine, query.question);
  }
}
