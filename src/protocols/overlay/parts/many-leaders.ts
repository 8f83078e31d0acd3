/**
 * Super-peers on real processes. A cluster is ready once its members name one leader, which these never do: there each
 * node says in its role which super-peer it uses, and names no leader.
 */
import type { Protocol, Vocabulary } from "../../../core/protocol.ts";

export function manyLeaders<V extends Vocabulary, O>(make: (options?: O) => Protocol<V>): (options?: O) => Protocol<V> {
  return (options) => {
    const protocol = make(options);
    return {
      ...protocol,
      view(state, self) {
        const { role, leader } = protocol.view(state, self);
        return { role: leader == null || leader === self ? role : `${role} of ${leader}` };
      },
    };
  };
}
