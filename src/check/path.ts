/** Converts a path through the state space into a run: the moves, their effects, and the states in between. */
import { InvariantViolation } from "../core/errors.ts";
import type { EventOf, MessageOf, NodeId, RecordOf, StateOf, Vocabulary } from "../core/protocol.ts";
import type { Answer } from "../driver/requests.ts";
import { FailedMove } from "./failed-move.ts";
import type { Outcome } from "./local-steps.ts";
import type { Model, Move } from "./model.ts";

/** A move in a counterexample, and its effects. */
export interface Taken<V extends Vocabulary> {
  /** The move itself. */
  readonly move: Move<V>;
  /** The messages that the node sent, in order. */
  readonly sends: readonly { readonly to: NodeId; readonly message: MessageOf<V> }[];
  /** The events that the node emitted, in order. */
  readonly events: readonly EventOf<V>[];
  /** The node's replies to requests, in order. */
  readonly replies: readonly Answer<V>[];
  /** The option that the checker selected for each `ctx.choose`, in order. */
  readonly choices: readonly { readonly label: string; readonly option: unknown }[];
  /** The records left in the node's journal if it crashed within the step. Otherwise null. */
  readonly journal: readonly RecordOf<V>[] | null;
  /** The states of the nodes after the move, in the order of `nodes`. Null for a stopped node. */
  readonly states: readonly (StateOf<V> | null)[];
}

/** A state on the path. `isRight` selects the move that leads to it. If omitted, any move may lead there. */
export interface Waypoint<V extends Vocabulary> {
  readonly tuple: Int32Array;
  readonly isRight?: (move: Move<V>) => boolean;
}

/**
 * Returns the run from the initial state through the states that the waypoints represent, in order. It starts in the
 * actual initial state, so it is a possible run with actual ids, even if equivalent states were merged.
 */
export function retrace<V extends Vocabulary>(model: Model<V>, waypoints: readonly Waypoint<V>[]): Taken<V>[] {
  return retraced(model, waypoints).path;
}

/** Like `retrace`, but appends the first move whose handler throws. */
export function retraceToFailure<V extends Vocabulary>(model: Model<V>, waypoints: readonly Waypoint<V>[]): Taken<V>[] {
  const { path, at } = retraced(model, waypoints);
  model.leavesOutFailures = false;
  try {
    model.expand(at, () => false);
  } catch (error) {
    if (!(error instanceof FailedMove)) throw error;
    return [...path, takenOf(model, (error as FailedMove<Move<V>>).move, null, at)];
  }
  throw new InvariantViolation("lost-path", "a handler threw during the search but not when the run was retraced");
}

function retraced<V extends Vocabulary>(
  model: Model<V>,
  waypoints: readonly Waypoint<V>[],
): { path: Taken<V>[]; at: Int32Array } {
  const at = model.initial();
  const arrived = new Int32Array(model.width);
  const standIn = new Int32Array(model.width);
  const path = waypoints.map(({ tuple, isRight = () => true }) => {
    let taken: Taken<V> | null = null;
    model.expandPlainly(at, (move, outcome) => {
      standIn.set(model.next);
      model.represent(standIn);
      if (!standIn.every((value, k) => value === tuple[k]) || !isRight(move())) return false;
      arrived.set(model.next);
      taken = takenOf(model, move(), outcome, arrived);
      return true;
    });
    if (taken === null) throw new InvariantViolation("lost-path", "no move leads to a state that was found earlier");
    at.set(arrived);
    return taken;
  });
  return { path, at };
}

/** Returns the effects of a move. @param after the state after the move */
export function takenOf<V extends Vocabulary>(
  model: Model<V>,
  move: Move<V>,
  outcome: Outcome<V> | null,
  after: Int32Array,
): Taken<V> {
  const { nodes } = model.options;
  const { locals, messages } = model.steps;
  const struck = move.crashesWithinStep === true && outcome !== null ? locals.valueOf(outcome.local) : null;
  return {
    move,
    sends: (outcome?.sends ?? []).map(({ to, envelope }) => ({
      to: nodes[to] as NodeId,
      message: messages.valueOf(model.network.envelopeOf(envelope).message),
    })),
    events: outcome?.events ?? [],
    replies: outcome?.replies ?? [],
    choices: outcome?.choices ?? [],
    journal: struck?.journal ?? null,
    states: nodes.map((_, i) => locals.valueOf(after[i] as number).state),
  };
}
