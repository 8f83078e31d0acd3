/** The transitions of the model, as plain data. */
import type { CommandOf, MessageOf, NodeId, TimerOf, Vocabulary } from "../core/protocol.ts";
import type { CommandSource, OwnStep } from "./local-steps.ts";

/**
 * One transition, with all the data needed for a trace. `duplicate`: the message is received but stays in flight.
 * `crashesWithinStep`: the node crashes during the step, so some of its effects do not take place.
 */
export type Move<V extends Vocabulary> = {
  /** The node that moves. */
  readonly node: NodeId;
  /** Whether the node crashes within the step. */
  readonly crashesWithinStep?: true;
  /** With `timers: "timed"`, the time that passes before the move, in milliseconds. Absent if none does. */
  readonly afterMs?: number;
} & (
  | { readonly kind: "receive" | "duplicate" | "lose"; readonly from: NodeId; readonly message: MessageOf<V> }
  | { readonly kind: "command"; readonly command: CommandOf<V>; readonly by: CommandSource }
  | { readonly kind: "timeout"; readonly timer: TimerOf<V> }
  | { readonly kind: "start" | "crash" | "pause" | "resume" }
);

/** Returns the move of a step that a node takes on its own. */
export function ownMove<V extends Vocabulary>({ stimulus, by }: OwnStep<V>, node: NodeId): Move<V> {
  if (stimulus.kind === "timeout") return { ...stimulus, node };
  return { kind: "command", node, command: stimulus.command, by: by as CommandSource };
}
