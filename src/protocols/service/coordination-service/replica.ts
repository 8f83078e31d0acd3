/**
 * A replica of the service's state: applies what the log decides, tells what has changed as it does so, and takes snapshots so that
 * the log can forget. It journals nothing: after a restart the log tells it everything anew.
 * Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach", ACM Computing Surveys 1990.
 */
import type { Context, NodeId, Protocol, RequestId } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import {
  type Command,
  commandShape,
  MAX_SNAPSHOT_BYTES,
  type Members,
  membersShape,
  snapshotShape,
} from "../../consensus/family/replicated-log.ts";
import { type OptionsOf, optionTable, whole } from "../../options.ts";
import { answerTo, applyProposal, readProposal } from "./apply.ts";
import { areSound, catchUpAll, type MachineDefinitions, requireDefined } from "./machines.ts";
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
import { beginSaving, goOnSaving, type Saving } from "./saving.ts";
import { isForgotten, sessionOf } from "./sessions.ts";
import { type Applying, type Data, emptyData, fitsBytes, limitOptions, type Reply, type Session } from "./state.ts";

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
    /** The snapshot that is being written. */
    saving: Saving | null;
    /** The last one that was written was too large. */
    isTooLarge: boolean;
  };
  command: /** From the log. */
    | { type: "decided"; index: number; command: Command }
    | { type: "installed"; index: number; snapshot: string }
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
    | { type: "saved"; index: number; snapshot: string };
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

const replicaOptions = optionTable("replica", {
  snapshotChars: whole(
    1_048_576,
    "a snapshot is taken after this many applied characters, and as many as the last one had; four times as many, up to eight times this. Members add up to half of that, by number, so that they take theirs at different times",
  ),
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
const dueAfter = (least: number, saved: number, self: NodeId): number =>
  Math.max(least, saved, Math.min(GROWTH * saved, MOST * least)) * (1 + (self % TURNS) / (2 * TURNS));

/** What an entry of the log takes beside its operation. */
const ENTRY_CHARS = 64;

type State = Replica["state"];
type Ctx = Context<Replica>;

/** @param machines of the application; may be filled while the service runs. */
export function replica(given?: Partial<ReplicaOptions>, machines: MachineDefinitions = {}): Protocol<Replica> {
  const { snapshotChars, ...limits } = replicaOptions.settle(given);

  /** What it costs is paid for by what has come since: on average a character is saved twice at most, of a small state far more seldom. */
  function saveIfDue(state: State, chars: number, ctx: Ctx): void {
    state.unsaved += chars;
    if (state.saving === null && state.unsaved >= dueAfter(snapshotChars, state.saved, ctx.self)) {
      catchUpAll({ data: state.data, limits }, machines);
      if (areSound(state.data, machines)) state.saving = beginSaving(state.index, state.data, state.digest, machines);
      state.unsaved = 0;
    }
    if (state.saving === null) return;
    const { index } = state.saving;
    const snapshot = goOnSaving(state.saving, chars);
    if (snapshot === null) return;
    state.saving = null;
    // Half at least: what is applied anew in one step, such as what has waited for a machine, is saved seldom even where little comes of it.
    state.saved = Math.max(snapshot.length, Math.floor(state.saved / 2));
    const wasTooLarge = state.isTooLarge;
    state.isTooLarge = !fitsBytes(snapshot, MAX_SNAPSHOT_BYTES); // No other member would take it.
    if (!state.isTooLarge) ctx.emit({ type: "saved", index, snapshot });
    else if (wasTooLarge) requireDefined(state.data); // Until then the log keeps all that it stands for.
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

  return {
    name: "replica",
    init: () => ({ index: 0, data: emptyData(), digest: 0, unsaved: 0, saved: 0, saving: null, isTooLarge: false }),
    command: {
      decided(state, { index, command }, ctx) {
        if (index <= state.index) return; // It is told anew what it has had.
        state.index = index;
        apply(state, index, command, ctx);
        state.digest = mixed(state.digest, `${command.client} ${state.data.revision} `, command.operation);
        ctx.emit({ type: "applied", index, digest: state.digest });
        if (snapshotChars > 0) saveIfDue(state, command.operation.length + ENTRY_CHARS, ctx);
      },
      installed(state, { index, snapshot }, ctx) {
        if (index <= state.index) return; // It has had all of it.
        Object.assign(state, JSON.parse(snapshot), {
          index,
          unsaved: 0,
          saved: snapshot.length,
          saving: null,
          isTooLarge: false,
        });
        const { data } = state;
        ctx.emit({ type: "restored", revision: data.revision });
        if (data.members !== null) ctx.emit({ type: "members", list: copyOf(data.members) });
        const life = data.lives[ctx.self];
        if (life === undefined) return;
        const session = sessionOf(data, ctx.self);
        const replies = session === null ? none : repliesTo(session, 1, session.applied);
        const isOver = session === null;
        ctx.emit({
          type: "answered",
          life,
          session: session?.id ?? null,
          round: 0,
          ...replies,
          isOver,
          isRestored: true,
        });
      },
      reconfigured({ data }, { voters, learners }, ctx) {
        noteConfiguration({ data, limits, tell: (event) => ctx.emit(event) }, { voters, learners });
      },
      query(state, { request, query }, ctx) {
        const { data } = state;
        ctx.emit({
          type: "queried",
          request,
          revision: data.revision,
          answer: answerTo({ data, limits }, machines, query),
        });
      },
      look({ data }, _command, ctx) {
        const sessions = data.sessions.map(({ id, seen, ttlMs }) => ({ session: id, seen, ttlMs }));
        ctx.emit({ type: "seen", sessions });
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
    },
    source: "Schneider, ACM Computing Surveys 1990",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ index }) => ({ role: `applied ${index}` }),
  };
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
