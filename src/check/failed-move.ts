/**
 * Errors for a handler that throws, which ends a search. The local step identifies the handler, the model identifies
 * the move, and the search finds the run that leads to that move.
 */
import type { HandlerFailure } from "../driver/handler-failure.ts";

/** Thrown by a local step when its handler throws. */
export class FailedHandler extends Error {
  constructor(readonly failure: HandlerFailure) {
    super(String(failure.error), { cause: failure.error });
  }
}

/** Thrown by the model for a move when its handler throws. */
export class FailedMove<Move> extends Error {
  constructor(
    readonly failure: HandlerFailure,
    readonly move: Move,
  ) {
    super(String(failure.error), { cause: failure.error });
  }
}

/** Returns the outcomes of a move. @throws FailedMove if a handler throws, unless such moves are omitted */
export function endings<Outcome, Move>(
  outcomes: () => readonly Outcome[],
  move: () => Move,
  leavesOutFailures: boolean,
): readonly Outcome[] {
  try {
    return outcomes();
  } catch (error) {
    if (!(error instanceof FailedHandler)) throw error;
    if (leavesOutFailures) return [];
    throw new FailedMove(error.failure, move());
  }
}
