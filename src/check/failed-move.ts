/** A handler that throws ends a search: the local step says which handler it was, the model which move, the search how to get there. */
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

/** @throws FailedMove for a handler that throws, unless such moves are left out */
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
