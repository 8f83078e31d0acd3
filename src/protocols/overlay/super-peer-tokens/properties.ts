/** What tokens keep to, and what they come to in the end. */
import type { NodeId, Property, World } from "../../../core/protocol.ts";
import type { State, SuperPeerTokens } from "./vocabulary.ts";

type Nodes = World<State>;

/** Who holds each token. A holder whose token is on its way does not count: it only keeps what may come back. */
function holders({ alive, state }: Nodes): Map<number, NodeId[]> {
  const found = new Map<number, NodeId[]>();
  for (const node of alive) {
    const { token, moving } = state(node);
    if (token === null || moving > 0) continue;
    found.set(token.id, [...(found.get(token.id) ?? []), node]);
  }
  return found;
}

/** `tokens`: how many there were in the beginning. */
export function superPeerProperties(
  isSettled: (state: State) => boolean,
  tokens: () => number,
): readonly Property<SuperPeerTokens>[] {
  return [
    {
      name: "one holder",
      claim: "no token is held by two nodes",
      when: "always",
      holds: (world) => [...holders(world).values()].every((nodes) => nodes.length === 1),
    },
    {
      name: "none lost",
      claim: "in the end there are as many tokens as in the beginning, or as alive nodes if these are fewer",
      when: "eventually",
      holds: (world) => holders(world).size === Math.min(tokens(), world.alive.length),
    },
    {
      name: "settled",
      claim: "in the end each token is held by one node, which is a super-peer",
      when: "eventually",
      holds(world) {
        const held = [...holders(world)];
        const isEach = held.every(([, nodes]) => nodes.length === 1 && isSettled(world.state(nodes[0] as NodeId)));
        return isEach && world.alive.every((node) => world.state(node).moving === 0);
      },
    },
    {
      name: "served",
      claim: "in the end each node uses a super-peer",
      when: "eventually",
      holds: ({ alive, state }) =>
        alive.every((node) => {
          const { superPeer } = state(node);
          return superPeer !== null && alive.includes(superPeer) && isSettled(state(superPeer));
        }),
    },
  ];
}
