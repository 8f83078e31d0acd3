/** The types of lockstep: the statements that players sign, and the state, messages, commands and events. */
import type { PerNode } from "../../../core/per-node.ts";
import { canonical } from "../../../core/plain.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { list, natural, oneOf, struct, text, variants } from "../../../core/shape.ts";
import { type Signed, type Signer, sign, signed } from "../../../core/signatures.ts";
import { DIGEST_CHARS, digest } from "../../digest.ts";
import { flag, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";

const MAX_PLAYERS = 64;
const MAX_ACTION_BYTES = 1_000;
const MAX_GAME_BYTES = 100;

const phases = ["commit", "echo", "reveal"] as const;
/** The message that is due in a phase. */
export type Phase = (typeof phases)[number];

/** The statement "My action in this turn has this hash." */
export interface Commitment {
  game: string;
  turn: number;
  hash: string;
}

/** The statement "This is my action, with the rest of the hash's input." */
export interface Opening {
  game: string;
  turn: number;
  nonce: string;
  action: string;
}

/** The statement "I did not receive this player's message before the deadline, and I have stopped." */
export interface Complaint {
  game: string;
  turn: number;
  player: NodeId;
  due: Phase;
}

/** A proof that convicts a player. Any party that knows the players' keys can verify it. */
export type Proof =
  /** The player revealed an action that it had not committed to. */
  | { type: "wrong-reveal"; commitment: Signed<Commitment>; opening: Signed<Opening> }
  /** The player committed to two actions in one turn. */
  | { type: "equivocation"; one: Signed<Commitment>; other: Signed<Commitment> }
  /** The player reused a commitment that was opened by a different player or in a different turn. */
  | { type: "replay"; commitment: Signed<Commitment>; opening: Signed<Opening> }
  /** A majority of the players reported the player as silent. */
  | { type: "silence"; complaints: Signed<Complaint>[] };

/** A kind of proof. */
export type How = Proof["type"];

/** Vocabulary of lockstep turns. */
export type Lockstep = {
  state: {
    /** The current or last turn. 0 before the first. */
    turn: number;
    /** The current phase. `over` means that the player has stopped permanently. */
    phase: "waiting" | "committing" | "echoing" | "revealing" | "over";
    /** The number of times the player has requested missing messages in this phase. */
    attempts: number;
    /** The player's action for this turn, and its actions for later turns. */
    action: string | null;
    plays: string[];
    commitments: PerNode<Signed<Commitment>>;
    /** The players whose echo has arrived. */
    echoed: NodeId[];
    openings: PerNode<Signed<Opening>>;
    /** Commitments for the next turn that arrived early. */
    early: PerNode<Signed<Commitment>>;
    /** The statements from the previous turn, which a slow player may request. */
    past: Statements;
    /** Complaints about this turn. */
    complaints: Signed<Complaint>[];
    /** The players that have stopped, each with its complaint. */
    stopped: PerNode<Signed<Complaint>>;
    convicted: PerNode<Proof>;
  };
  message:
    | { type: "commit"; statement: Signed<Commitment> }
    | { type: "echo"; turn: number; statements: Signed<Commitment>[] }
    | { type: "reveal"; statement: Signed<Opening> }
    /** Requests the messages from these players that have not arrived. */
    | { type: "missing"; turn: number; due: Phase; from: NodeId[] }
    | { type: "complain"; statement: Signed<Complaint> }
    | { type: "accuse"; proof: Proof };
  timer: "due";
  command: /** Plays the action in the next turn that has none. */ { type: "propose"; value: string };
  event: /** The actions of all players, and a readable form of them. */
    | { type: "decided"; turn: number; actions: PerNode<string>; value: string }
    | { type: "cheated"; player: NodeId; how: How; proof: Proof }
    /** The messages from these players did not arrive in time. */
    | { type: "stopped"; turn: number; due: Phase; missing: NodeId[] };
};

/** The statements of one turn, keyed by player. */
export interface Statements {
  commitments: PerNode<Signed<Commitment>>;
  openings: PerNode<Signed<Opening>>;
}

export type State = Lockstep["state"];
export type Ctx = Context<Lockstep>;

const game = text(MAX_GAME_BYTES);
const action = text(MAX_ACTION_BYTES);
const hash = text(DIGEST_CHARS);
const players = list(natural, MAX_PLAYERS);

export const commitmentShape = signed("commitment", struct<Commitment>({ game, turn: natural, hash }));
export const openingShape = signed("opening", struct<Opening>({ game, turn: natural, nonce: hash, action }));
const due = oneOf(...phases);
export const complaintShape = signed("complaint", struct<Complaint>({ game, turn: natural, player: natural, due }));
/** The shape of a proof, for validation and for the wire. */
export const proofShape = variants<Proof>({
  "wrong-reveal": { commitment: commitmentShape, opening: openingShape },
  equivocation: { one: commitmentShape, other: commitmentShape },
  replay: { commitment: commitmentShape, opening: openingShape },
  silence: { complaints: list(complaintShape, MAX_PLAYERS) },
});

export const shapes = {
  message: {
    commit: { statement: commitmentShape },
    echo: { turn: natural, statements: list(commitmentShape, MAX_PLAYERS) },
    reveal: { statement: openingShape },
    missing: { turn: natural, due, from: players },
    complain: { statement: complaintShape },
    accuse: { proof: proofShape },
  },
  command: { propose: { value: action } },
};

/**
 * Returns H(game ‖ turn ‖ player ‖ nonce ‖ action). The hash covers the game, the turn and the player, so it cannot be
 * reused elsewhere.
 */
export const hashOf = ({ by, value }: Pick<Signed<Opening>, "by" | "value">): string =>
  digest(canonical([value.game, value.turn, by, value.nonce, value.action]));

const nonceShape = signed("nonce", struct({ game, turn: natural, action }));

/**
 * Returns the nonce that makes the hash impossible to guess. It is the digest of a signature that no other player can
 * make and that is never sent. So it needs no randomness and is as secret as the key. Each action has its own nonce, so
 * a revealed nonce does not help to guess other actions.
 */
export const nonceFor = (signer: Signer, value: { game: string; turn: number; action: string }): string =>
  digest(sign(signer, nonceShape, value).signature);

/** Returns whether one message is due before another. */
export const isBefore = (one: { turn: number; due: Phase }, other: { turn: number; due: Phase }): boolean =>
  one.turn < other.turn || (one.turn === other.turn && phases.indexOf(one.due) < phases.indexOf(other.due));

const MAX_MOVES = 100;

/** The option table for `lockstep()`. */
export const lockstepOptions = optionTable("lockstep", {
  game: option(text(MAX_GAME_BYTES), "game", "the name of the game; commitments are valid only in their game"),
  echoes: flag(false, "whether players exchange the commitments they have received before they reveal"),
  resends: whole(9, "how many times a missing message is requested before the player counts as late"),
  resendMs: positive(100, "the time between two requests for a missing message"),
  moves: option(
    list(text(MAX_ACTION_BYTES), MAX_MOVES),
    [],
    "the actions to choose from at the start of each turn; if empty, actions come from commands",
  ),
  turns: whole(1_000_000, "the number of turns in the game"),
});

/** Options for `lockstep()`. */
export type LockstepOptions = OptionsOf<typeof lockstepOptions>;
