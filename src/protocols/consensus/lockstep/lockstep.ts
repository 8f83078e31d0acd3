/**
 * Lockstep turns: all players commit to their actions before any of them reveals its own, so no player can wait to see
 * the others' actions.
 * Baughman & Levine, "Cheat-Proof Playout for Centralized and Distributed Online Games", INFOCOM 2001, §4. Echoes of
 * commitments and proofs for third parties are not in the paper.
 *
 * Assumes   players begin each turn together, and messages arrive within half of their deadlines, including retries;
 *           signatures cannot be forged and hashes cannot be inverted; at most a minority of players is Byzantine.
 * Safety    once a player has revealed its action, no other player can change its own (with echoes, even with Byzantine
 *           players); players that settle a turn have the same actions; no honest player is accused; no player settles
 *           a turn that it gave up.
 * Liveness  every turn ends by its deadlines: all actions are known, or play stops and the cheater is named.
 * Cost      2N(N − 1) messages per turn; 3N(N − 1) with echoes. Lost messages cost more.
 *
 * A player that stays silent before it reveals its action can end the game after it has seen the other actions.
 * Deadlines limit that. Proof of a player's silence requires complaints from a majority, so with two players there is
 * no such proof. For a player that has given up a turn, the game is over. It never returns with the same key.
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

/** The maximum number of actions that wait for their turn. */
const MAX_PLAYS = 1_000;

const dueIn = { committing: "commit", echoing: "echo", revealing: "reveal" } as const;
type Playing = keyof typeof dueIn;
/**
 * The deadline of each phase, as a multiple of the basic deadline. A player that does not receive all messages stops
 * and reports that before the deadline of the players that are waiting for it in the next phase.
 */
const patience = { committing: 1, echoing: 2, revealing: 3 } as const;
const isPlaying = (phase: State["phase"]): phase is Playing => Object.hasOwn(dueIn, phase);

/**
 * Creates lockstep turns for one player of a game. @throws UsageError `bad-option` if an option is unknown or out of
 * range.
 */
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

  /** Advances through the phases as far as the received messages allow. */
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

  /**
   * Reveals this player's action. All players have committed by now. With echoes, each is committed to the same action
   * toward all others.
   */
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

  /** Gives up at the deadline and complains about silent players, except those that reported that they had stopped. */
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

  /** Handles a complaint about this turn. A majority of equal complaints is a proof. */
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

  /** Sends a proof to all players once, if it convicts a player that has not been convicted yet. */
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
    if (of === null) return; // The turn is over or too far ahead.
    const known = of[by];
    if (known?.value.hash === value.hash) return; // A duplicate.
    if (known !== undefined) return prove({ type: "equivocation", one: known, other: statement }, state, ctx);
    of[by] = statement;
    for (const opening of openingsIn(state)) compare(statement, opening, state, ctx);
  }

  /** Compares a commitment with a revealed action, and sends a proof if they show that a player cheated. */
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

  /** Sends a player the messages that it is missing, if they may already be sent. */
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
        if (turn !== state.turn || !isPlaying(state.phase)) return; // No longer awaited.
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

/** Returns the players whose message for this phase is missing. */
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

/** Returns whether an echo contains every player's commitment, and each is equal to the one received here. */
const showsAll = (state: State, statements: readonly Signed<Commitment>[], { self, peers }: Ctx): boolean =>
  [self, ...peers].every((player) =>
    statements.some(
      ({ by, value }) =>
        by === player && value.turn === state.turn && value.hash === state.commitments[player]?.value.hash,
    ),
  );

/** Returns whether the player reported that it stopped before this message was due. */
const hasStopped = (state: State, player: NodeId, at: { turn: number; due: Phase }): boolean => {
  const complaint = state.stopped[player];
  return complaint !== undefined && isBefore(complaint.value, at);
};
