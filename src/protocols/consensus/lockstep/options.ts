/** What players of lockstep turns agree on before they begin. */
import { boolean, list, natural, real, struct, text } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";
import { MAX_ACTION_BYTES, MAX_GAME_BYTES } from "./vocabulary.ts";

export interface LockstepOptions {
  /** Names the game: what is committed to in one is of no use in another. Players play no two by one name. */
  game: string;
  /** Whether players show each other the commitments that they have before they reveal. */
  echoes: boolean;
  /** How often what is missing is asked for, and how long after each other. What has not come so long after the last time is late. */
  resends: number;
  resendMs: number;
  /** What to choose from at the start of each turn; if there is nothing, actions are commands. */
  moves: string[];
  /** After so many turns the game is at its end. */
  turns: number;
}

const defaults: LockstepOptions = {
  game: "game",
  echoes: false,
  resends: 9,
  resendMs: 100,
  moves: [],
  turns: 1_000_000,
};

const MAX_MOVES = 100;

const optionShape = struct<LockstepOptions>({
  game: text(MAX_GAME_BYTES),
  echoes: boolean,
  resends: natural,
  resendMs: real,
  moves: list(text(MAX_ACTION_BYTES), MAX_MOVES),
  turns: natural,
});

export function lockstepOptions(given: Partial<LockstepOptions> | undefined): LockstepOptions {
  const options = settle(defaults, optionShape, given, "lockstep");
  requirePositive("lockstep.resendMs", options.resendMs);
  return options;
}
