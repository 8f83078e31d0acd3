/**
 * Lockstep turns: all players commit to their actions before any reveals its own, so nobody can wait for what the others do.
 * Baughman & Levine, "Cheat-Proof Playout for Centralized and Distributed Online Games", INFOCOM 2001, §4; the echo of commitments
 * and proofs that others can verify are added.
 *
 * Assumes   players that play begin each turn together, and what is due, or what is asked for again, arrives within half
 *           of its deadline; signatures that nobody can forge, hashes that nobody can invert; a minority lies.
 * Safety    once a player has revealed its action, nobody can change another (with echoes, whoever lies); players that
 *           settle a turn have the same actions; no honest player is accused; nobody settles a turn that it gave up.
 * Liveness  every turn ends by its deadlines: all actions are known, or play stops, and says who cheated.
 * Cost      2N(N − 1) messages a turn; with echoes 3N(N − 1). What is lost costs more.
 *
 * A player that is silent before it reveals learns nothing by it, but it can end the game when it has seen what others play: that is what
 * deadlines are for. A majority that complains about it is the proof, so between two players it is word against word.
 * The game is over for a player that has given up a turn: it never comes back under the same key.
 */
import { entriesIn } from "../../../core/per-node.ts";
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { type Signed, sign } from "../../../core/signatures.ts";
import { declarations, strange, type Table, verdictOn } from "./proofs.ts";
import {
  type Commitment,
  type Complaint,
  type Ctx,
  commitmentShape,
  complaintShape,
  hashOf,
  isBefore,
  type Lockstep,
  type LockstepOptions,
  lockstepOptions,
  nonceFor,
  type Opening,
  openingShape,
  type Phase,
  type Proof,
  type State,
} from "./vocabulary.ts";

/** Actions that wait for their turn. */
const MAX_PLAYS = 1_000;

const dueIn = { committing: "commit", echoing: "echo", revealing: "reveal" } as const;
type Playing = keyof typeof dueIn;
/**
 * In so many times the deadline. A player that lacks something stops by its own deadline and says so: those that wait for it in the
 * phase after have heard that before theirs.
 */
const patience = { committing: 1, echoing: 2, revealing: 3 } as const;
const isPlaying = (phase: State["phase"]): phase is Playing => Object.hasOwn(dueIn, phase);

export function lockstep(given?: Partial<LockstepOptions>): Protocol<Lockstep> {
  const options = lockstepOptions.settle(given);
  const { game, echoes, resends, resendMs, moves, turns } = options;
  const tableOf = (ctx: Ctx): Table => ({ game, players: playersOf(ctx), signatures: ctx.signatures });

  function beginNext(state: State, ctx: Ctx): void {
    if (state.phase !== "waiting" || state.turn >= turns) return;
    const action = moves.length > 0 ? ctx.choose("move", moves) : state.plays.shift();
    if (action === undefined) return;
    state.past = { commitments: state.commitments, openings: state.openings };
    state.turn += 1;
    state.action = action;
    state.commitments = state.early;
    state.early = {};
    state.echoed = [];
    state.openings = {};
    state.complaints = [];
    const value = { game, turn: state.turn, action };
    const opening = { by: ctx.self, value: { ...value, nonce: nonceFor(ctx, value) } };
    const statement = sign(ctx, commitmentShape, { game, turn: state.turn, hash: hashOf(opening) });
    state.commitments[ctx.self] = statement;
    enter(state, "committing", ctx);
    ctx.broadcast({ type: "commit", statement });
    advance(state, ctx);
  }

  function enter(state: State, phase: Playing, ctx: Ctx): void {
    state.phase = phase;
    state.attempts = 0;
    ctx.setTimer("due", resendMs);
  }

  /** Goes on as far as what has come allows. */
  function advance(state: State, ctx: Ctx): void {
    if (state.phase === "committing" && missing(state, ctx).length === 0) {
      if (echoes) showCommitments(state, ctx);
      else reveal(state, ctx);
    }
    if (state.phase === "echoing" && missing(state, ctx).length === 0) reveal(state, ctx);
    if (state.phase === "revealing" && missing(state, ctx).length === 0) settleTurn(state, ctx);
  }

  function showCommitments(state: State, ctx: Ctx): void {
    enter(state, "echoing", ctx);
    ctx.broadcast(echoOf(state));
  }

  /** All others are bound by now: with echoes, to the same action before everybody. */
  function reveal(state: State, ctx: Ctx): void {
    enter(state, "revealing", ctx);
    const { turn, action } = state as { turn: number; action: string };
    const nonce = nonceFor(ctx, { game, turn, action });
    const statement = sign(ctx, openingShape, { game, turn, nonce, action });
    state.openings[ctx.self] = statement;
    ctx.broadcast({ type: "reveal", statement });
    for (const commitment of Object.values(state.commitments)) compare(commitment, statement, state, ctx);
  }

  function settleTurn(state: State, ctx: Ctx): void {
    state.phase = "waiting";
    ctx.cancelTimer("due");
    const all = entriesIn(state.openings).map(([player, { value }]) => [player, value.action] as const);
    const value = all.map(([player, action]) => `${player}: ${action}`).join(", ");
    ctx.emit({ type: "decided", turn: state.turn, actions: Object.fromEntries(all), value });
    beginNext(state, ctx);
  }

  /** The deadline has passed. Who had stopped before this was due is not silent: it has said why. */
  function giveUp(state: State, phase: Playing, ctx: Ctx): void {
    const late = missing(state, ctx);
    const { turn } = state;
    const due = dueIn[phase];
    state.phase = "over";
    ctx.emit({ type: "stopped", turn, due, missing: late });
    for (const player of late.filter((each) => !hasStopped(state, each, { turn, due }))) {
      const statement = sign(ctx, complaintShape, { game, turn, player, due });
      ctx.broadcast({ type: "complain", statement });
      hear(state, statement, ctx);
    }
  }

  /** A complaint of this turn. Once a majority has one about the same, that is a proof. */
  function hear(state: State, statement: Signed<Complaint>, ctx: Ctx): void {
    const { by, value } = statement;
    const stopped = state.stopped[by];
    if (stopped === undefined || isBefore(value, stopped.value)) state.stopped[by] = statement;
    const isSame = (other: Signed<Complaint>): boolean =>
      other.value.player === value.player && other.value.due === value.due;
    if (value.turn !== state.turn || state.complaints.some((known) => known.by === by && isSame(known))) return;
    state.complaints.push(statement);
    prove({ type: "silence", complaints: state.complaints.filter(isSame) }, state, ctx);
  }

  /** Tells everybody once, if it is a proof against somebody that was not convicted before. */
  function prove(proof: Proof, state: State, ctx: Ctx): void {
    const { culprit } = verdictOn(proof, tableOf(ctx));
    if (culprit === null || state.convicted[culprit] !== undefined) return;
    state.convicted[culprit] = proof;
    state.phase = "over";
    ctx.cancelTimer("due");
    ctx.emit({ type: "cheated", player: culprit, how: proof.type, proof });
    ctx.broadcast({ type: "accuse", proof });
  }

  function takeCommitment(state: State, statement: Signed<Commitment>, ctx: Ctx): void {
    const { by, value } = statement;
    if (by === ctx.self || strange(statement, commitmentShape, tableOf(ctx)) !== null) return;
    const of = value.turn === state.turn ? state.commitments : value.turn === state.turn + 1 ? state.early : null;
    if (of === null) return; // Of a turn that is over, or that nobody can be at.
    const known = of[by];
    if (known?.value.hash === value.hash) return; // Again.
    if (known !== undefined) return prove({ type: "equivocation", one: known, other: statement }, state, ctx);
    of[by] = statement;
    for (const opening of openingsIn(state)) compare(statement, opening, state, ctx);
  }

  /** Holds a commitment against what somebody has revealed. */
  function compare(commitment: Signed<Commitment>, opening: Signed<Opening>, state: State, ctx: Ctx): void {
    const isItsOwn = commitment.by === opening.by && commitment.value.turn === opening.value.turn;
    const isOpened = hashOf(opening) === commitment.value.hash;
    if (isItsOwn && !isOpened) prove({ type: "wrong-reveal", commitment, opening }, state, ctx);
    if (!isItsOwn && isOpened) prove({ type: "replay", commitment, opening }, state, ctx);
  }

  function takeOpening(state: State, statement: Signed<Opening>, ctx: Ctx): void {
    const { by, value } = statement;
    if (by === ctx.self || value.turn !== state.turn || !isPlaying(state.phase)) return; // Too late.
    if (strange(statement, openingShape, tableOf(ctx)) !== null) return;
    for (const commitment of [...Object.values(state.commitments), ...Object.values(state.early)])
      compare(commitment, statement, state, ctx);
    state.openings[by] ??= statement;
  }

  /** Everything that this player can say to what another has not got. */
  function answer(state: State, to: NodeId, turn: number, due: Phase, from: readonly NodeId[], ctx: Ctx): void {
    const of = turn === state.turn ? state : turn === state.turn - 1 ? state.past : null;
    const isRevealed = of?.openings[ctx.self] !== undefined;
    for (const player of of === null ? [] : playersOf(ctx).filter((each) => from.includes(each))) {
      const [commitment, opening] = [of?.commitments[player], of?.openings[player]];
      if (due === "commit" && commitment !== undefined) ctx.send(to, { type: "commit", statement: commitment });
      if (due === "reveal" && opening !== undefined && isRevealed) ctx.send(to, { type: "reveal", statement: opening });
    }
    const hasAll = playersOf(ctx).every((player) => of?.commitments[player] !== undefined);
    if (due === "echo" && of !== null && hasAll && from.includes(ctx.self))
      ctx.send(to, echoOf({ turn, commitments: of.commitments }));
    if (state.phase !== "over") return;
    for (const proof of Object.values(state.convicted)) ctx.send(to, { type: "accuse", proof });
    const own = state.stopped[ctx.self];
    if (own !== undefined) ctx.send(to, { type: "complain", statement: own });
  }

  return {
    name: "lockstep",
    init: newPlayer,
    start: (state, ctx) => beginNext(state, ctx),
    receive: {
      commit(state, _from, { statement }, ctx) {
        takeCommitment(state, statement, ctx);
        advance(state, ctx);
      },
      echo(state, from, { turn, statements }, ctx) {
        if (turn !== state.turn || !isPlaying(state.phase)) return; // Nobody waits for it.
        for (const statement of statements) takeCommitment(state, statement, ctx);
        if (!state.echoed.includes(from) && showsAll(state, statements, ctx)) state.echoed.push(from);
        advance(state, ctx);
      },
      reveal(state, _from, { statement }, ctx) {
        takeOpening(state, statement, ctx);
        advance(state, ctx);
      },
      missing(state, sender, { turn, due, from }, ctx) {
        answer(state, sender, turn, due, from, ctx);
      },
      complain(state, _from, { statement }, ctx) {
        if (strange(statement, complaintShape, tableOf(ctx)) === null && statement.by !== ctx.self)
          hear(state, statement, ctx);
      },
      accuse(state, _from, { proof }, ctx) {
        prove(proof, state, ctx);
      },
    },
    timeout: {
      due(state, ctx) {
        if (!isPlaying(state.phase)) return;
        state.attempts += 1;
        if (state.attempts === patience[state.phase] * (resends + 1)) return giveUp(state, state.phase, ctx);
        const { turn } = state;
        ctx.broadcast({ type: "missing", turn, due: dueIn[state.phase], from: missing(state, ctx) });
        ctx.setTimer("due", resendMs);
      },
    },
    command: {
      propose(state, { value }, ctx) {
        if (moves.length > 0 || state.phase === "over" || state.plays.length >= MAX_PLAYS) return;
        state.plays.push(value);
        beginNext(state, ctx);
      },
    },
    ...declarations(options),
  };
}

const playersOf = ({ self, peers }: Pick<Ctx, "self" | "peers">): NodeId[] => [self, ...peers].sort((a, b) => a - b);

/** Whose part of the phase has not come. */
function missing(state: State, ctx: Ctx): NodeId[] {
  const has = { committing: state.commitments, revealing: state.openings };
  if (state.phase === "echoing") return ctx.peers.filter((peer) => !state.echoed.includes(peer));
  if (!isPlaying(state.phase)) return [];
  const known = has[state.phase];
  return ctx.peers.filter((peer) => known[peer] === undefined);
}

const newPlayer = (): State => ({
  turn: 0,
  phase: "waiting",
  attempts: 0,
  action: null,
  plays: [],
  commitments: {},
  echoed: [],
  openings: {},
  early: {},
  past: { commitments: {}, openings: {} },
  complaints: [],
  stopped: {},
  convicted: {},
});

const openingsIn = ({ openings, past }: State): Signed<Opening>[] => [
  ...Object.values(past.openings),
  ...Object.values(openings),
];

const echoOf = ({ turn, commitments }: Pick<State, "turn" | "commitments">): Lockstep["message"] => ({
  type: "echo",
  turn,
  statements: Object.values(commitments),
});

/** Whether an echo has the commitment of every player, the same that came here. */
const showsAll = (state: State, statements: readonly Signed<Commitment>[], { self, peers }: Ctx): boolean =>
  [self, ...peers].every((player) =>
    statements.some(
      ({ by, value }) =>
        by === player && value.turn === state.turn && value.hash === state.commitments[player]?.value.hash,
    ),
  );

/** It has said so before this was due. */
const hasStopped = (state: State, player: NodeId, at: { turn: number; due: Phase }): boolean => {
  const complaint = state.stopped[player];
  return complaint !== undefined && isBefore(complaint.value, at);
};
