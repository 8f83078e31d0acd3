import { expect, it } from "vitest";
import { superPeerDht } from "../super-peer-dht/super-peer-dht.ts";
import { manyLeaders } from "./many-leaders.ts";

it("names no leader, and shows in the role which super-peer a node uses", () => {
  const { view, init } = manyLeaders(superPeerDht)({
    identifierBits: 3,
    reservedBits: 1,
    identifiers: [1, 3],
    members: [0, 1],
  });
  expect([0, 1].map((node) => view(init(node, [1 - node]), node))).toEqual([
    { role: "super-peer" },
    { role: "node of 0" },
  ]);
});
