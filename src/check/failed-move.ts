/**
 * A handler that throws ends a search. The local step identifies the handler, the model the move, and the search the run to it.
 */
import type { HandlerFailure } from "../driver/handler-failure.ts";

export class FailedHandler extends Error {
  constructor(readonly failure: HandlerFailure) {
    super(String(failure.error), { cause: failure.error });
  }
}

export class FailedMove<Move> extends Error {
  constructor(
    readonly failure: HandlerFailure,
    readonly move: Move,
  ) {
    super(String(failure.error), { cause: failure.error });
  }
}

/** @throws FailedMove if a handler throws, unless such moves are omitted */
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
