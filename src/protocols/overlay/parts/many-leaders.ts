/**
 * Support for super-peers in real processes. A cluster counts as ready once its members agree on a leader, but
 * super-peers have no single leader. So a node's view does not name a leader, and its role shows which super-peer the
 * node uses.
 */
import type { NodeId, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { type PositionRule, present } from "../../presentation.ts";
import { dhtOptions } from "../super-peer-dht/super-peer-dht.ts";
import { identifierRing } from "../super-peer-dht/vocabulary.ts";
import { tokenOptions } from "../super-peer-tokens/super-peer-tokens.ts";
import { space, type State as TokensState } from "../super-peer-tokens/vocabulary.ts";

// Positions of overlay nodes on the identifier circle or in space. Stopped nodes also have positions.

/** Returns a node's position on the identifier circle. */
export const onIdentifierCircle: PositionRule = (state, node, given) => {
  const options = dhtOptions.settle(given ?? undefined);
  const ring = identifierRing(options);
  const keys = 2 ** options.identifierBits;
  const at = [ring.keyAt(ring.placeOf(node)) / keys];
  return present({ at, region: ring.reservedKey(node) / keys, follows: superPeerOf(state) });
};

/** Returns a node's position in the space of the tokens. */
export const inSpace: PositionRule = (state, node, given) => {
  const [x = 0, y = 0] = space(tokenOptions.settle(given ?? undefined)).pointOf(node);
  const token = (state as TokensState | null)?.token ?? null;
  return present({ at: [x, y], holds: token === null ? null : "token", follows: superPeerOf(state) });
};

const superPeerOf = (state: unknown): NodeId | null =>
  (state as Pick<TokensState, "superPeer"> | null)?.superPeer ?? null;

/** Moves each node's leader from its view to its role, because tools expect a single leader for all nodes. */
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
