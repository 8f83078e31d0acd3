/**
 * A replica of the service's state. It applies the log, emits every change, and takes snapshots so that the log can be
 * compacted. It writes and reads a snapshot one chunk at a time, with timers in between. It journals only the chunks of
 * a snapshot in progress, so that they do not have to stay in memory. After a restart, the log emits all decided
 * entries again. Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach", ACM Computing
 * Surveys 1990.
 */
import type { Chunk } from "../../../core/chunk.ts";
import type { Context, NodeId, Protocol, RequestId } from "../../../core/protocol.ts";
import { chunk, natural } from "../../../core/shape.ts";
import {
  type Command,
  commandShape,
  MAX_CHUNK_BYTES,
  type Members,
  membersShape,
  snapshotShape,
} from "../../consensus/family/replicated-log.ts";
import { count, type OptionsOf, optionTable, whole } from "../../options.ts";
import { answerTo, applyProposal, readProposal } from "./apply.ts";
import { areSound, catchUpAll, type MachineDefinitions } from "./machines.ts";
import { copyOf, noteConfiguration } from "./member-list.ts";
import {
  type Answer,
  isClient,
  type Query,
  queryShape,
  type Revision,
  type ServiceEvent,
  type SessionId,
} from "./operations.ts";
import { isForgotten, sessionOf } from "./sessions.ts";
import {
  asItStands,
  beginReading,
  beginWriting,
  endReading,
  nextChunk,
  type Reading,
  readText,
  type Writing,
} from "./snapshot.ts";
import { type Applying, type Data, emptyData, limitOptions, type Reply, type Session } from "./state.ts";

/** Vocabulary of a replica, which applies the log and answers queries. */
export type Replica = {
  state: {
    /** The index of the last applied log entry. */
    index: number;
    data: Data;
    /** A digest of all applied commands, in order, and their revisions. Equal digests mean equal histories. */
    digest: number;
    /**
     * The number of characters applied since the last snapshot (`unsaved`), and the length of that snapshot (`saved`,
     * at least half the previous value).
     */
    unsaved: number;
    saved: number;
    /**
     * The snapshot that is being written, with the chunks written so far. `grown` is the number of characters applied
     * since the last chunk was written.
     */
    saving: { writing: Writing; chunks: Chunk[]; grown: number } | null;
    /** Whether the journal contains chunks of an incomplete snapshot. */
    hasWritten: boolean;
    /** The snapshot that is being read. `read` is the number of chunks read so far. */
    installing: { index: number; chunks: Chunk[]; read: number; reading: Reading } | null;
    /** Commands received while a snapshot is being read, in order. */
    later: Replica["command"][];
  };
  command: /** Commands from the log. */
    | { type: "decided"; index: number; command: Command }
    | { type: "installed"; index: number; snapshot: Chunk[] }
    | ({ type: "reconfigured" } & Members)
    /**
     * From the member's session: a query that may now be answered (`query`), and a request for signs of life (`look`).
     */
    | { type: "query"; request: RequestId; query: Query }
    | { type: "look" };
  event:
    | ServiceEvent
    | { type: "applied"; index: number; digest: number }
    /** A snapshot was installed, so some changes were not emitted. Query them with `changes`. */
    | { type: "restored"; revision: Revision }
    /**
     * The outcome for a client, emitted by the member that the client is connected to. `isForgotten`: whether the
     * client must take a new id.
     */
    | ({ type: "clientAnswered"; client: NodeId; isForgotten: boolean } & Answered)
    /** Events for the member's session. */
    | ({ type: "answered" } & Answered)
    | { type: "queried"; request: RequestId; revision: Revision; answer: Answer }
    | { type: "seen"; sessions: Seen[] }
    /** Events for the log. */
    | { type: "saved"; index: number; snapshot: Chunk[] };
  timer: "save" | "install";
  record: /** A chunk of the snapshot that is being written. */ { type: "written"; chunk: Chunk } | { type: "idle" };
};

/** The outcome of a member's operations. */
export interface Answered {
  life: number;
  /** The session. Null if it has not begun or has ended. */
  session: SessionId | null;
  /** The lease round. 0 if the entry has none. */
  round: number;
  /** The number of the operation that the first reply belongs to. */
  first: number;
  replies: Reply[];
  /** Whether the session has ended. If so, any operations without a reply have not been applied and will not be. */
  isOver: boolean;
  /** Whether this outcome comes from a snapshot, which contains nothing else about ended sessions. */
  isRestored: boolean;
}

/** A session's latest sign of life in the log. */
export interface Seen {
  session: number;
  seen: number;
  ttlMs: number;
}

/** The maximum length of a chunk, in UTF-16 units of at most three bytes each. */
const MAX_CHUNK_CHARS = Math.floor(MAX_CHUNK_BYTES / 3) - 1;

const replicaOptions = optionTable("replica", {
  snapshotChars: whole(
    1_048_576,
    "a snapshot is taken when the number of characters applied since the last one reaches the largest of this, that snapshot's length, and four times that length (limited to eight times this). Members add up to half of that, depending on their id, so that they take snapshots at different times",
  ),
  chunkChars: count(
    262_144,
    "how many characters of a snapshot are written or read at once; also the size of a chunk",
    {
      max: MAX_CHUNK_CHARS,
    },
  ),
  ...limitOptions,
});

/** Options of a replica. */
export type ReplicaOptions = OptionsOf<typeof replicaOptions>;

export const { defaults: replicaDefaults } = replicaOptions;
/** The default limit on the total size of all shared state. */
export const MAX_STATE_BYTES = replicaDefaults.maxBytes;

/**
 * The factors that determine when the next snapshot is due: after `GROWTH` times the length of the last one, limited to
 * `MOST` times the configured minimum, but never before the length of the last one.
 */
const GROWTH = 4;
const MOST = 8;
/**
 * The number of different times at which replicas take snapshots. A replica pauses briefly to take a snapshot. If all
 * replicas did so at the same time, no majority would answer, so each waits for a different time that depends on its
 * id.
 */
const TURNS = 8;
/**
 * The approximate maximum growth of the log between two snapshots, in characters. The log is kept both in memory and in
 * the journal.
 */
const MAX_UNSAVED = 134_217_728;
const dueAfter = (least: number, saved: number, self: NodeId): number =>
  Math.min(MAX_UNSAVED, Math.max(least, saved, Math.min(GROWTH * saved, MOST * least))) *
  (1 + (self % TURNS) / (2 * TURNS));

/**
 * The pause between two chunks when writing a snapshot. A snapshot is read without pauses, because the replica cannot
 * apply commands until it has finished reading.
 */
const SAVE_EVERY_MS = 10;
/** The minimum number of snapshot characters to write per character that the log grows. */
const PACE = 4;
/** The number of delayed commands performed in one step. */
const MAX_LATER = 64;

/** The size of a log entry, excluding its operation. */
const ENTRY_CHARS = 64;

type State = Replica["state"];
type Ctx = Context<Replica>;

const initial = (): State => ({
  index: 0,
  data: emptyData(),
  digest: 0,
  unsaved: 0,
  saved: 0,
  saving: null,
  hasWritten: false,
  installing: null,
  later: [],
});

/** Creates a replica. @param machines the application's state machines; may be extended while the service is running */
export function replica(given?: Partial<ReplicaOptions>, machines: MachineDefinitions = {}): Protocol<Replica> {
  const { snapshotChars, chunkChars, ...limits } = replicaOptions.settle(given);

  /**
   * Begins a snapshot once enough has been applied to justify its cost. On average, a character is saved at most twice,
   * and far less often if the state is small.
   */
  function saveIfDue(state: State, chars: number, ctx: Ctx): void {
    state.unsaved += chars;
    if (state.saving !== null) return keepPace(state, state.saving, chars, ctx);
    if (state.unsaved < dueAfter(snapshotChars, state.saved, ctx.self)) return;
    catchUpAll({ data: state.data, limits }, machines);
    if (areSound(state.data, machines)) {
      const writing = beginWriting(state.index, asItStands(state.data), state.digest);
      state.saving = { writing, chunks: [], grown: 0 };
      save(state, state.saving, ctx);
    }
    state.unsaved = 0;
  }

  /** Writes more of the snapshot as the log grows. Under load, the timer alone is too slow. */
  function keepPace(state: State, saving: NonNullable<State["saving"]>, chars: number, ctx: Ctx): void {
    saving.grown += chars;
    if (saving.grown * PACE >= chunkChars) save(state, saving, ctx);
  }

  /** Writes the next chunk. */
  function save(state: State, saving: NonNullable<State["saving"]>, ctx: Ctx): void {
    const { writing, chunks } = saving;
    const { chunk: next, isLast } = nextChunk(writing, chunkChars);
    chunks.push(next);
    saving.grown = 0;
    if (!isLast) {
      ctx.persist({ type: "written", chunk: next });
      state.hasWritten = true;
      return ctx.setTimer("save", SAVE_EVERY_MS);
    }
    state.saving = null;
    // Use at least half the previous value. Commands that waited for a machine are applied in one step, which must not
    // cause frequent snapshots even if the state stays small.
    state.saved = Math.max(writing.chars, Math.floor(state.saved / 2));
    ctx.emit({ type: "saved", index: writing.index, snapshot: chunks });
    forgetWritten(state, ctx); // The log has journaled the chunks, or has rejected them.
  }

  /** Reads the next chunk. */
  function install(state: State, installing: NonNullable<State["installing"]>, ctx: Ctx): void {
    const { index, chunks, reading } = installing;
    readText(reading, (chunks[installing.read] as Chunk).text);
    installing.read += 1;
    if (installing.read < chunks.length) return ctx.setTimer("install", 0);
    endReading(reading);
    const { data, digest } = reading;
    const saved = chunks.reduce((sum, { length }) => sum + length, 0);
    Object.assign(state, { index, data, digest, unsaved: 0, saved, installing: null });
    emitRestored(state, ctx);
    doLater(state, ctx);
  }

  /** Performs some of the delayed commands, and leaves the rest to later steps. */
  function doLater(state: State, ctx: Ctx): void {
    const now = state.later.splice(0, MAX_LATER);
    for (const command of now) perform(state, command, ctx);
    if (state.later.length > 0) ctx.setTimer("install", 0);
  }

  function apply(state: State, index: number, { client, operation }: Command, ctx: Ctx): void {
    const proposal = readProposal(operation);
    if (proposal === null) return;
    const on: Applying = { data: state.data, limits, tell: (event) => ctx.emit(event) };
    const applied = applyProposal(on, machines, client, index, proposal);
    if (applied === null || (applied.member !== ctx.self && !isClient(applied.member))) return;
    const { member, life, session, isOver } = applied;
    const isBatch = proposal.type === "operations";
    const replies = isBatch && session !== null ? repliesTo(session, proposal.first, proposal.operations.length) : none;
    const round = isBatch ? proposal.round : 0;
    const answered = { life, session: session?.id ?? null, round, ...replies, isOver, isRestored: false };
    if (member === ctx.self) ctx.emit({ type: "answered", ...answered });
    else ctx.emit({ type: "clientAnswered", client: member, isForgotten: isForgotten(on.data, member), ...answered });
  }

  /** Performs a command, or delays it while a snapshot is being read. A newer snapshot is never delayed. */
  function inTurn(state: State, command: Replica["command"], ctx: Ctx): void {
    const isFree = state.installing === null && state.later.length === 0;
    if (isFree || command.type === "installed") perform(state, command, ctx);
    else state.later.push(command);
  }

  function perform(state: State, command: Replica["command"], ctx: Ctx): void {
    const { data } = state;
    switch (command.type) {
      case "decided":
        return applyNext(state, command.index, command.command, ctx);
      case "installed": {
        const { index, snapshot: chunks } = command;
        if (index <= state.index) return; // This replica has already applied everything in the snapshot.
        state.saving = null;
        forgetWritten(state, ctx);
        // The snapshot contains all of the log's earlier decisions. An earlier configuration must not be applied to
        // newer data.
        state.later = state.later.filter(({ type }) => type === "query" || type === "look");
        state.installing = { index, chunks, read: 0, reading: beginReading() };
        return install(state, state.installing, ctx);
      }
      case "reconfigured": {
        const { voters, learners } = command;
        return noteConfiguration({ data, limits, tell: (event) => ctx.emit(event) }, { voters, learners });
      }
      case "query": {
        const { request, query } = command;
        const answer = answerTo({ data, limits }, machines, query);
        return ctx.emit({ type: "queried", request, revision: data.keyspace.revision, answer });
      }
      case "look": {
        const sessions = data.sessions.map(({ id, seen, ttlMs }) => ({ session: id, seen, ttlMs }));
        return ctx.emit({ type: "seen", sessions });
      }
    }
  }

  function applyNext(state: State, index: number, command: Command, ctx: Ctx): void {
    if (index <= state.index) return; // The entry has already been applied; the log emits entries again.
    state.index = index;
    apply(state, index, command, ctx);
    state.digest = mixed(state.digest, `${command.client} ${state.data.keyspace.revision} `, command.operation);
    ctx.emit({ type: "applied", index, digest: state.digest });
    if (snapshotChars > 0) saveIfDue(state, command.operation.length + ENTRY_CHARS, ctx);
  }

  return {
    name: "replica",
    init: initial,
    start: forgetWritten,
    command: { decided: inTurn, installed: inTurn, reconfigured: inTurn, query: inTurn, look: inTurn },
    timeout: {
      save(state, ctx) {
        if (state.saving !== null) save(state, state.saving, ctx);
      },
      install(state, ctx) {
        if (state.installing !== null) install(state, state.installing, ctx);
        else doLater(state, ctx);
      },
    },
    replay: {
      written(state) {
        state.hasWritten = true;
      },
      idle(state) {
        state.hasWritten = false;
      },
    },
    shapes: {
      command: {
        decided: { index: natural, command: commandShape },
        installed: { index: natural, snapshot: snapshotShape },
        reconfigured: membersShape,
        query: { request: natural, query: queryShape },
        look: {},
      },
      record: { written: { chunk: chunk(MAX_CHUNK_BYTES) }, idle: {} },
    },
    source: "Schneider, ACM Computing Surveys 1990",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ index }) => ({ role: `applied ${index}` }),
  };
}

function forgetWritten(state: State, ctx: Ctx): void {
  if (state.hasWritten) ctx.compact([{ type: "idle" }]);
  state.hasWritten = false;
}

function emitRestored({ data }: State, ctx: Ctx): void {
  ctx.emit({ type: "restored", revision: data.keyspace.revision });
  if (data.members !== null) ctx.emit({ type: "members", list: copyOf(data.members) });
  const life = data.lives[ctx.self];
  if (life === undefined) return;
  const session = sessionOf(data, ctx.self);
  const replies = session === null ? none : repliesTo(session, 1, session.applied);
  const isOver = session === null;
  ctx.emit({ type: "answered", life, session: session?.id ?? null, round: 0, ...replies, isOver, isRestored: true });
}

interface Replies {
  first: number;
  replies: Reply[];
}
const none: Replies = { first: 1, replies: [] };

/**
 * Returns the unacknowledged replies to the operations that have been applied, among the `count` operations starting at
 * `first`.
 */
function repliesTo(session: Session, first: number, count: number): Replies {
  const oldest = session.applied - session.replies.length + 1;
  const from = Math.max(first, oldest);
  return { first: from, replies: session.replies.slice(from - oldest, Math.max(0, first + count - oldest)) };
}

/** Returns the FNV-1a hash of the strings in order, seeded with the previous digest. */
function mixed(before: number, ...texts: readonly string[]): number {
  let hash = (before ^ 0x81_1c_9d_c5) >>> 0;
  for (const text of texts)
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93) >>> 0;
  return hash;
}
