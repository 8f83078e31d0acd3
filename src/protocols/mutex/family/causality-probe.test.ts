import { describe, expect, it } from "vitest";
import { exploreUses } from "../../../../test/protocols/mutex-stage.ts";
import type { Exploration, ExploreOptions } from "../../../check/explore.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { centralServer } from "../central-server.ts";
import { maekawa } from "../maekawa.ts";
import { maekawaSanders } from "../maekawa-sanders/maekawa-sanders.ts";
import { ricartAgrawala } from "../ricart-agrawala/ricart-agrawala.ts";
import { tokenRing } from "../token-ring.ts";
import { causalityProbe } from "./causality-probe.ts";
import { type Mutex, type MutexWithWorkload, mutexWithWorkload } from "./workload.ts";

const ME3 = "ME3 happened-before";

type Found = Exploration<MutexWithWorkload<Mutex>>;
type Uses = number | readonly number[];

/** Nodes that tell each other that they have asked, and ME3 alone. */
function exploring<M extends Mutex>(mutex: () => Protocol<M>, nodes: number, uses: Uses, more: object = {}): Found {
  const protocol = causalityProbe(mutex)();
  const { properties } = mutexWithWorkload(() => protocol);
  const inOrder = properties.filter(({ name }) => name === ME3);
  const options: Partial<ExploreOptions<MutexWithWorkload<M>>> = { properties: inOrder, ...more };
  return exploreUses(protocol, nodes, uses, options);
}

/** A counterexample in words, a move each. */
const deeds = ({ path }: Found): string[] =>
  path.map(({ move }) => {
    if (move.kind !== "receive") return `${move.node} ${move.kind}`;
    const { body } = move.message as { body: { type: string } };
    return `${move.node} receive ${body.type} from ${move.from}`;
  });

describe("ME3: entry is granted in the order of happened-before", () => {
  it("violated with a central server: a later request arrives first", () => {
    const found = exploring(centralServer, 3, 1);
    expect(found).toMatchObject({ verdict: "violated", property: { name: ME3 } });
    expect(deeds(found)).toEqual([
      "1 command",
      "2 receive told from 1",
      "2 command",
      "0 receive request from 2",
      "2 receive grant from 0",
    ]);
  });

  it("violated on a token ring: the token comes by the later one first", () => {
    const found = exploring(tokenRing, 3, 1, { begin: "together" });
    expect(found).toMatchObject({ verdict: "violated", property: { name: ME3 } });
    expect(deeds(found).slice(3)).toEqual(["1 command", "0 receive told from 1", "0 command"]);
  });

  it("holds with Ricart–Agrawala: two of 3 nodes ask, over FIFO links and over links without order; two ask twice", () => {
    expect(exploring(ricartAgrawala, 3, [1, 1, 0])).toMatchObject({ verdict: "holds", states: 5_954 });
    expect(exploring(ricartAgrawala, 3, [1, 1, 0], { network: "bag" })).toMatchObject({
      verdict: "holds",
      states: 47_689,
    });
    expect(exploring(ricartAgrawala, 2, 2)).toMatchObject({ verdict: "holds", states: 2_003 });
  });

  it.each([
    ["Maekawa", maekawa],
    ["Maekawa–Sanders, though its queues are ordered by (T, p)", maekawaSanders],
  ])("violated with %s: those who vote for both hear of the later one first", (_name, mutex) => {
    const found = exploring(mutex as never, 4, [1, 0, 0, 1]);
    expect(found).toMatchObject({ verdict: "violated", property: { name: ME3 } });
    expect(deeds(found)).toEqual([
      "0 command",
      "3 receive told from 0",
      "3 command",
      "1 receive request from 3",
      "2 receive request from 3",
      "3 receive vote from 1",
      "3 receive vote from 2",
    ]);
  });

  it("3 nodes are too few to show it with them: two sets share but one of the two that ask, and links are FIFO", () => {
    expect(exploring(maekawa, 3, 1)).toMatchObject({ verdict: "holds", states: 17_107 });
    expect(exploring(maekawaSanders, 3, 1)).toMatchObject({ verdict: "holds", states: 145_619 });
  });
});
