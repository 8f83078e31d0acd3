/**
 * A replica of the service's state: applies what the log decides, tells what has changed as it does so, and takes snapshots so that
 * the log can forget. A snapshot is written and read a chunk at a time, with timers between. It journals nothing but the chunks of one
that it is writing, so that they need not be held: after a restart the log tells it everything anew.
 * Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach", ACM Computing Surveys 1990.
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

export type Replica = {
  state: {
    /** Of the last place of the log that it has been told of. */
    index: number;
    data: Data;
    /** Of all commands that it has applied, in that order, and the revisions they came to: equal digests mean equal histories. */
    digest: number;
    /** How much it has applied since the last snapshot, and how long that was (or half of one before it), in characters. */
    unsaved: number;
    saved: number;
    /** The snapshot that is being written, with the chunks written so far; `grown` characters were applied since the last one. */
    saving: { writing: Writing; chunks: Chunk[]; grown: number } | null;
    /** The journal contains chunks of an incomplete snapshot. */
    hasWritten: boolean;
    /** The snapshot that is being read; `read` counts the chunks read so far. */
    installing: { index: number; chunks: Chunk[]; read: number; reading: Reading } | null;
    /** Commands received while a snapshot is being read, in order. */
    later: Replica["command"][];
  };
  command: /** From the log. */
    | { type: "decided"; index: number; command: Command }
    | { type: "installed"; index: number; snapshot: Chunk[] }
    | ({ type: "reconfigured" } & Members)
    /** From the member's session: what it may read now, and who is to be heard of. */
    | { type: "query"; request: RequestId; query: Query }
    | { type: "look" };
  event:
    | ServiceEvent
    | { type: "applied"; index: number; digest: number }
    /** A snapshot took the place of changes that have not been told: `changes` asks for them. */
    | { type: "restored"; revision: Revision }
    /** To a client that is no member, by the member that it speaks to. `isForgotten`: it has to take another number. */
    | ({ type: "clientAnswered"; client: NodeId; isForgotten: boolean } & Answered)
    /** To the member's session. */
    | ({ type: "answered" } & Answered)
    | { type: "queried"; request: RequestId; revision: Revision; answer: Answer }
    | { type: "seen"; sessions: Seen[] }
    /** To the log. */
    | { type: "saved"; index: number; snapshot: Chunk[] };
  timer: "save" | "install";
  record: /** Of the snapshot that is being written. */ { type: "written"; chunk: Chunk } | { type: "idle" };
};

/** What came of a member's operations. */
export interface Answered {
  life: number;
  /** Null: that life has not begun, or has ended. */
  session: SessionId | null;
  /** Of the lease; 0 if nothing is said of it. */
  round: number;
  /** The number of the operation that the first reply is to. */
  first: number;
  replies: Reply[];
  /** That life has ended: what is not answered has not been applied and will not be. */
  isOver: boolean;
  /** It is read from a snapshot: of lives that have ended it tells nothing more. */
  isRestored: boolean;
}

/** Where in the log a session was last heard of. */
export interface Seen {
  session: number;
  seen: number;
  ttlMs: number;
}

/** A unit of UTF-16 takes three bytes at most. */
const MAX_CHUNK_CHARS = Math.floor(MAX_CHUNK_BYTES / 3) - 1;

const replicaOptions = optionTable("replica", {
  snapshotChars: whole(
    1_048_576,
    "a snapshot is taken after this many applied characters, and as many as the last one had; four times as many, up to eight times this. Members add up to half of that, by number, so that they take theirs at different times",
  ),
  chunkChars: count(262_144, "how many characters of a snapshot are written or read at once, and one chunk holds", {
    max: MAX_CHUNK_CHARS,
  }),
  ...limitOptions,
});

export type ReplicaOptions = OptionsOf<typeof replicaOptions>;

export const { defaults: replicaDefaults } = replicaOptions;
export const MAX_STATE_BYTES = replicaDefaults.maxBytes;

/** So many times what a snapshot took comes before the next one, as long as that is not more than so many times the least. */
const GROWTH = 4;
const MOST = 8;
/** Who takes a snapshot does nothing else for a moment. If all did at once, whatever needs a majority would wait for it: so each waits longer, by its number. */
const TURNS = 8;
/** The log, which is in memory and in the journal, does not grow by more than this between two snapshots. */
const MAX_UNSAVED = 134_217_728;
const dueAfter = (least: number, saved: number, self: NodeId): number =>
  Math.min(MAX_UNSAVED, Math.max(least, saved, Math.min(GROWTH * saved, MOST * least))) *
  (1 + (self % TURNS) / (2 * TURNS));

/** The pause between writing two chunks. There is none between reading two: the replica can do nothing else. */
const SAVE_EVERY_MS = 10;
/** The snapshot grows by at least this many characters for each character that the log grows by. */
const PACE = 4;
/** How many delayed commands are performed in one step. */
const MAX_LATER = 64;

/** What an entry of the log takes beside its operation. */
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

/** @param machines of the application; may be filled while the service runs. */
export function replica(given?: Partial<ReplicaOptions>, machines: MachineDefinitions = {}): Protocol<Replica> {
  const { snapshotChars, chunkChars, ...limits } = replicaOptions.settle(given);

  /** What it costs is paid for by what has come since: on average a character is saved twice at most, of a small state far more seldom. */
  function saveIfDue(state: State, chars: number, ctx: Ctx): void {
    state.unsaved += chars;
    if (state.saving !== null) return keepPace(state, state.saving, chars, ctx);
    if (state.unsaved < dueAfter(snapshotChars, state.saved, ctx.self)) return;
    catchUpAll({ data: state.data, limits }, machines);
    if (areSound(state.data, machines)) {
      const writing = beginWriting(state.index, asItStands(state.data, machines), state.digest);
      state.saving = { writing, chunks: [], grown: 0 };
      save(state, state.saving, ctx);
    }
    state.unsaved = 0;
  }

  /** Under load the timer alone would let the log grow faster than the snapshot. */
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
    // Half at least: what is applied anew in one step, such as what has waited for a machine, is saved seldom even where little comes of it.
    state.saved = Math.max(writing.chars, Math.floor(state.saved / 2));
    ctx.emit({ type: "saved", index: writing.index, snapshot: chunks });
    forgetWritten(state, ctx); // The log journals the chunks now, or has rejected them.
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

  /** Performs some of the delayed commands, and the rest in later steps. */
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

  /** While a snapshot is being read, all commands are delayed except a newer snapshot. */
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
        if (index <= state.index) return; // It has had all of it.
        state.saving = null;
        forgetWritten(state, ctx);
        // The snapshot contains what the log decided before it. An older configuration must not be applied to newer data.
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
        return ctx.emit({ type: "queried", request, revision: data.revision, answer });
      }
      case "look": {
        const sessions = data.sessions.map(({ id, seen, ttlMs }) => ({ session: id, seen, ttlMs }));
        return ctx.emit({ type: "seen", sessions });
      }
    }
  }

  function applyNext(state: State, index: number, command: Command, ctx: Ctx): void {
    if (index <= state.index) return; // It is told anew what it has had.
    state.index = index;
    apply(state, index, command, ctx);
    state.digest = mixed(state.digest, `${command.client} ${state.data.revision} `, command.operation);
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
  ctx.emit({ type: "restored", revision: data.revision });
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

/** To so many operations from `first` on: those that have been applied, and whose replies are not acknowledged. */
function repliesTo(session: Session, first: number, count: number): Replies {
  const oldest = session.applied - session.replies.length + 1;
  const from = Math.max(first, oldest);
  return { first: from, replies: session.replies.slice(from - oldest, Math.max(0, first + count - oldest)) };
}

/** FNV-1a over the texts, one after the other, from what came before. */
function mixed(before: number, ...texts: readonly string[]): number {
  let hash = (before ^ 0x81_1c_9d_c5) >>> 0;
  for (const text of texts)
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93) >>> 0;
  return hash;
}
