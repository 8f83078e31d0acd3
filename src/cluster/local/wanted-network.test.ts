import { expect, test } from "vitest";
import { changesOf, faultsOf, healthyNetwork, networkAfter, networksAfter } from "./wanted-network.ts";

const nodes = [0, 1, 2, 3];

test("cuts a link at both ends, once, until it is mended", () => {
  const once = networkAfter(healthyNetwork, { type: "cut", nodes: [0, 2] }, nodes);
  const twice = networkAfter(once, { type: "cut", nodes: [2, 0] }, nodes);
  expect(twice.cuts).toHaveLength(2);
  expect(faultsOf(0, twice).cutTo).toEqual([2]);
  expect(faultsOf(2, twice).cutTo).toEqual([0]);
  expect(faultsOf(1, twice).cutTo).toEqual([]);
  expect(networkAfter(twice, { type: "mend", nodes: [0, 2] }, nodes)).toEqual(healthyNetwork);
});

test("a split cuts links between groups and mends those within; a node in no group is alone", () => {
  const before = networkAfter(healthyNetwork, { type: "cut", nodes: [0, 1] }, nodes);
  const split = networkAfter(before, { type: "split", groups: [[0, 1], [2]] }, nodes);
  expect(nodes.map((node) => faultsOf(node, split).cutTo)).toEqual([
    [2, 3],
    [2, 3],
    [0, 1, 3],
    [0, 1, 2],
  ]);
});

test("link conditions apply to all nodes until the network heals", () => {
  const degraded = networkAfter(healthyNetwork, { type: "link-conditions", dropRate: 0.5, delayMs: [10, 20] }, nodes);
  expect(faultsOf(3, degraded)).toEqual({ cutTo: [], dropRate: 0.5, delayMs: { min: 10, max: 20 } });
  expect(networkAfter(degraded, { type: "heal" }, nodes)).toEqual(healthyNetwork);
});

test("describes a node's changes", () => {
  const split = networkAfter(healthyNetwork, { type: "split", groups: [[0, 1], [2]] }, nodes);
  expect(changesOf(0, healthyNetwork, split)).toEqual(["link to 2 cut", "link to 3 cut"]);
  const degraded = networkAfter(healthyNetwork, { type: "link-conditions", dropRate: 0.2, delayMs: [0, 30] }, nodes);
  expect(changesOf(2, split, degraded)).toEqual([
    "link to 0 mended",
    "link to 1 mended",
    "link to 3 mended",
    "20 % of its messages dropped, others delayed by 0 to 30 ms",
  ]);
  expect(changesOf(2, degraded, degraded)).toEqual([]);
});

test("keeps a state of the network for a minute after it ended", () => {
  const at = (since: number) => ({ since, network: healthyNetwork });
  const sinceOf = (networks: readonly { since: number }[]) => networks.map(({ since }) => since);
  expect(sinceOf(networksAfter([at(0), at(1_000)], at(50_000)))).toEqual([0, 1_000, 50_000]);
  expect(sinceOf(networksAfter([at(0), at(1_000), at(50_000)], at(100_000)))).toEqual([1_000, 50_000, 100_000]);
  const many = Array.from({ length: 500 }, (_, index) => at(index));
  expect(networksAfter(many, at(500)).length).toBeLessThanOrEqual(61);
});
