/** Liveness of one node: it holds, or comes to hold, unless the node crashes. Timers that run for ever do not hide it. */
import type { LeadsTo, NodeId, StateOf, Vocabulary, World } from "../../../core/protocol.ts";

export const eventually = <V extends Vocabulary>(
  name: string,
  claim: string,
  holds: (world: World<StateOf<V>>, node: NodeId) => boolean,
): LeadsTo<V> => ({ name, claim, when: "leadsTo", given: (world, node) => !holds(world, node), holds });
