/** PBFT with a replica that lies: every run as far as breadth-first search goes, and random runs of the whole. */
import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { explore } from "../../../check/explore.ts";
import { walk } from "../../../check/search/walks.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type ByzantineBehaviour, byzantine } from "../../byzantine.ts";
import { type ReplicatedSystem, replicated } from "../family/systems.ts";
import { type Pbft, type PbftOptions, pbft } from "./pbft.ts";

type Replica = ReplicatedSystem<Pbft>;

const use: Replica["command"] = { type: "client", body: { type: "use", commands: 1 } };

/** Four replicas, of which one lies; one view change at most, and nothing is sent again. */
function model(liar: NodeId, how: ByzantineBehaviour, clients: readonly NodeId[]) {
  const log = { lastView: 1, statusMs: 0, retransmitMs: 0 };
  const made = replicated<Pbft, Partial<PbftOptions>>(pbft, { log, client: { retryMs: 0 } });
  const protocol = byzantine(made, new Map([[liar, how]]));
  return {
    protocol,
    properties: protocol.properties.filter(({ when }) => when === "always"),
    nodes: [0, 1, 2, 3],
    begin: "together",
    asks: (node: NodeId) => (clients.includes(node) ? [use] : []),
  } as const;
}

const viewChange = ["receive viewChange", "receive newView", "receive prepare", "receive commit", "decided"];

describe("pbft: four replicas, of which one lies", () => {
  it.each([
    ["the primary says nothing", 0, "mute"],
    ["the primary lies twice, as it likes", 0, { lies: 2 }],
    ["the next primary lies twice", 1, { lies: 2 }],
  ] as const)(
    "breadth-first, in rounds, %s: nothing is violated in the first states",
    { tags: ["long"] },
    (_name, liar, how) => {
      const clients = [1, 2, 3].filter((node) => node !== liar).slice(0, 2);
      const found = explore<Replica>({
        ...model(liar, how, clients),
        network: "fifo",
        timers: "rounds",
        maxStates: 60_000,
      });
      const reached = liar === 0 && how === "mute" ? reaching(found, ...viewChange) : found;
      expect([reached.verdict, reached.property]).toEqual(["unknown", null]);
    },
  );

  it.each(["random", "pct", "swarm"] as const)("%s runs, time-outs at any time: nothing is violated", (strategy) => {
    for (const liar of [0, 1]) {
      const found = walk<Replica>({
        ...model(liar, { lies: 3 }, [1, 2, 3]),
        network: "bag",
        timers: "free",
        maxTimeouts: 4,
        strategy,
        seed: 1,
        runs: 15,
      });
      expect(reaching(found, "receive viewChange").property).toBeNull();
    }
  });

  it.each(["random", "pct", "swarm"] as const)(
    "many %s runs come to a new view, and to a decision in it",
    { tags: ["long"] },
    (strategy) => {
      const found = walk<Replica>({
        ...model(0, { lies: 3 }, [1, 2, 3]),
        network: "bag",
        timers: "free",
        maxTimeouts: 4,
        strategy,
        seed: 2,
        runs: 150,
      });
      expect(reaching(found, ...viewChange).property).toBeNull();
    },
  );
});
