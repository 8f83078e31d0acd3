/**
 * The service's state machine alone: applies operations of sessions, one after another, and collects the events that it
 * emits.
 */
import type { Chunk } from "../../../src/core/chunk.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import * as stateMachine from "../../../src/protocols/service/coordination-service/apply.ts";
import type { MachineDefinitions } from "../../../src/protocols/service/coordination-service/machines.ts";
import {
  type Answer,
  type Operation,
  type Proposal,
  type Query,
  type Result,
  type ServiceEvent,
  type SessionId,
  STATE_MACHINE_VERSION,
} from "../../../src/protocols/service/coordination-service/operations.ts";
import { sessionOf } from "../../../src/protocols/service/coordination-service/sessions.ts";
import {
  beginReading,
  endReading,
  type Reading,
  readText,
} from "../../../src/protocols/service/coordination-service/snapshot.ts";
import {
  type Applying,
  type Data,
  emptyData,
  type Limits,
} from "../../../src/protocols/service/coordination-service/state.ts";

const limits: Limits = {
  maxBytes: 1_000_000,
  maxNames: 100,
  maxWaiting: 10,
  maxItems: 10,
  maxHistoryBytes: 100_000,
  maxPendingBytes: 300,
  maxMachines: 3,
  maxMachineBytes: 1_000,
};

export type StateMachine = Pick<typeof stateMachine, "applyProposal" | "answerTo">;

export interface OneReplica {
  data: Data;
  /** The events since the last call. */
  events(): ServiceEvent[];
  open(member: NodeId): SessionId;
  end(member: NodeId): void;
  /** Applies an operation in the member's session. */
  apply(member: NodeId, operation: Operation): Result;
  propose(member: NodeId, proposal: Proposal): ReturnType<StateMachine["applyProposal"]>;
  ask(query: Query): Answer;
}

/** @param machine a different implementation of the state machine */
export function oneReplica(
  given: Partial<Limits> = {},
  machines: MachineDefinitions = {},
  { applyProposal, answerTo }: StateMachine = stateMachine,
): OneReplica {
  const data = emptyData();
  let events: ServiceEvent[] = [];
  const on: Applying = { data, limits: { ...limits, ...given }, tell: (event) => void events.push(event) };
  let index = 0;

  function propose(member: NodeId, proposal: Proposal): ReturnType<StateMachine["applyProposal"]> {
    index += 1;
    return applyProposal(on, machines, member, index, structuredClone(proposal));
  }
  /** Adds the next operation number of the member's session. */
  function next(member: NodeId, operation: Extract<Proposal, { type: "operations" }>["operations"][number]) {
    const session = sessionOf(data, member);
    const first = (session?.applied ?? 0) + 1;
    const life = session?.life ?? (data.lives[member] ?? 0) + 1;
    return propose(member, {
      type: "operations",
      life,
      round: 1,
      acknowledged: first - 1,
      first,
      operations: [operation],
    })?.session;
  }
  return {
    data,
    events() {
      const since = events;
      events = [];
      return since;
    },
    open: (member) => next(member, { type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION })?.id ?? 0,
    end: (member) => void next(member, { type: "close", ifIdle: false }),
    apply: (member, operation) => next(member, operation)?.replies.at(-1)?.result ?? { type: "unknown" },
    propose,
    ask: (query) => answerTo(on, machines, query),
  };
}

/** Reads a complete snapshot. */
export function readAll(snapshot: readonly Chunk[]): Reading {
  const reading = beginReading();
  for (const { text } of snapshot) readText(reading, text);
  endReading(reading);
  return reading;
}
