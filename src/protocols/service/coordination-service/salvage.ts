/**
 * What one member's log knows of the shared state, where a majority is lost. Of the entries after its last snapshot a log alone does
 * not say which are committed. All of them are applied: what was acknowledged may be among them, and what was not may be done or not,
 * as its caller was told. What was acknowledged and never reached this member is lost.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { dispatch } from "../../../core/step.ts";
import { raft } from "../../consensus/raft/raft.ts";
import type { Raft } from "../../consensus/raft/vocabulary.ts";
import { type Replica, replica } from "./replica.ts";
import type { Data } from "./state.ts";

export interface Salvaged {
  readonly data: Data;
  /** Up to here all is committed for certain: it is in the snapshot. */
  readonly committed: number;
  /** Of the last entry. Of two logs the one with the higher term, and of one term with the higher index, knows more. */
  readonly lastIndex: number;
  readonly lastTerm: number;
  readonly voters: readonly NodeId[];
}

/** @param founders who voted before the log says otherwise. @param records of the log, as they were journalled. */
export function salvaged(founders: readonly NodeId[], records: readonly Raft["record"][]): Salvaged {
  const log = raft({ voters: [...founders] });
  const kept = log.init(NOBODY, founders);
  for (const record of records) dispatch(log, kept, { kind: "replay", record }, {} as Context<Raft>);
  // State machines of the application are not defined here: their commands wait in the snapshot for members that define them.
  const machine = replica({ snapshotChars: 0, maxPendingBytes: NO_LIMIT, maxMachineBytes: NO_LIMIT });
  const state = machine.init(NOBODY, founders);
  const ctx = { self: NOBODY, peers: founders, emit: () => {}, setTimer: () => {} } as unknown as Context<Replica>;
  const give = (command: Replica["command"]): void => dispatch(machine, state, { kind: "command", command }, ctx);
  const { snapshot, configuration } = kept;
  const { offset, offsetTerm, entries } = kept.log;
  if (snapshot.index > 0) give({ type: "installed", index: snapshot.index, snapshot: snapshot.chunks });
  while (state.installing !== null) dispatch(machine, state, { kind: "timeout", timer: "install" }, ctx);
  for (const [at, entry] of entries.entries())
    if (entry.type === "command") give({ type: "decided", index: offset + 1 + at, command: entry.command });
  return {
    data: state.data,
    committed: snapshot.index,
    lastIndex: offset + entries.length,
    lastTerm: entries.at(-1)?.term ?? offsetTerm,
    voters: configuration.voters,
  };
}

/** It is no member, so it is told of no session. */
const NOBODY: NodeId = Number.MAX_SAFE_INTEGER;
const NO_LIMIT = Number.MAX_SAFE_INTEGER;
