/** A handler that throws ends a search: the local step says which handler it was, the model which move, the search how to get there. */
import type { Vocabulary } from "../core/protocol.ts";
import type { HandlerFailure } from "../driver/handler-failure.ts";
import type { Outcome } from "./local-steps.ts";
import type { Move } from "./model.ts";

export class FailedHandler extends Error {
  constructor(readonly failure: HandlerFailure) {
    super(String(failure.error), { cause: failure.error });
  }
}

export class FailedMove<V extends Vocabulary> extends Error {
  constructor(
    readonly failure: HandlerFailure,
    readonly move: Move<V>,
  ) {
    super(String(failure.error), { cause: failure.error });
  }
}

/** @throws FailedMove for a handler that throws, unless such moves are left out */
export function endings<V extends Vocabulary>(
  outcomes: () => readonly Outcome<V>[],
  move: () => Move<V>,
  leavesOutFailures: boolean,
): readonly Outcome<V>[] {
  try {
    return outcomes();
  } catch (error) {
    if (!(error instanceof FailedHandler)) throw error;
    if (leavesOutFailures) return [];
    throw new FailedMove(error.failure, move());
  }
}
