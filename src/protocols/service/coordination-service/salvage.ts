/**
 * Recovers the shared state from a single member's log after a majority has been lost. A log alone does not show which
 * entries after its last snapshot have been committed, so all of them are applied. They may include both acknowledged
 * operations and operations whose callers received an uncertain outcome. Acknowledged operations that never reached
 * this member are lost.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { dispatch } from "../../../core/step.ts";
import { raft } from "../../consensus/raft/raft.ts";
import type { Raft } from "../../consensus/raft/vocabulary.ts";
import { type Replica, replica } from "./replica.ts";
import type { Data } from "./state.ts";

/** The state recovered from a log. */
export interface Salvaged {
  readonly data: Data;
  /** The snapshot's index. Everything up to this index is certain to have been committed. */
  readonly committed: number;
  /** The index and term of the last entry. Prefer the log with the higher term, then the one with the higher index. */
  readonly lastIndex: number;
  readonly lastTerm: number;
  readonly voters: readonly NodeId[];
}

/**
 * Returns the state recovered from a log. @param founders the initial voters, until the log names others @param records
 * the log's journaled records
 */
export function salvaged(founders: readonly NodeId[], records: readonly Raft["record"][]): Salvaged {
  const log = raft({ voters: [...founders] });
  const kept = log.init(NOBODY, founders);
  for (const record of records) dispatch(log, kept, { kind: "replay", record }, {} as Context<Raft>);
  // The application's state machines are not defined here. Their commands stay pending in the snapshot, for members
  // that define the machines.
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

/** An id that no member has, and that therefore has no session. */
const NOBODY: NodeId = Number.MAX_SAFE_INTEGER;
const NO_LIMIT = Number.MAX_SAFE_INTEGER;
