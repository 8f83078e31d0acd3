/** Timers that run for ever, here those that ask again, hide nothing: what is never repaired is seen to be owed. */
import { describe, expect, it } from "vitest";
import { use } from "../../../../test/protocols/multicast-stage.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { explore } from "../../../check/explore.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/simulation.ts";
import { contexts, withContext } from "../../contexts.ts";
import { delivery } from "../family/properties.ts";
import { multicastWithWorkload } from "../family/workload.ts";
import { type IpMulticast, type IpMulticastOptions, ipMulticast } from "./ip-multicast.ts";
import { evenly } from "./vocabulary.ts";

/** Who is asked for a message does not answer. */
const withoutRepairs = (options: Partial<IpMulticastOptions>): Protocol<IpMulticast> =>
  withContext(
    ipMulticast(options),
    contexts((ctx) => ({
      broadcast(message) {
        if (message.type !== "repair") ctx.broadcast(message);
      },
    })),
  );

describe("reliable multicast over IP multicast in which nobody repairs", () => {
  it("sim: whoever missed a message waits for it when the run is cut off", () => {
    const owed = (protocol: Protocol<IpMulticast>) => {
      const sim = simulation({
        protocol: multicastWithWorkload(protocol, delivery),
        nodes: [0, 1, 2],
        seed: 1,
        delayMs: 10,
      });
      for (const node of [0, 1, 2]) sim.wake(node);
      sim.cut(0, 1);
      sim.command(0, use(1));
      sim.mend(0, 1);
      sim.run(60_000);
      return sim.verdict().map(({ property, waiting }) => [property, waiting?.node]);
    };
    expect(owed(ipMulticast())).toEqual([]);
    expect(owed(withoutRepairs({}))).toEqual([
      ["workload: agreement", 1],
      ["agreement", 1],
      ["stability", 0],
    ]);
  });

  it("check: a run that asks again and again and never delivers", () => {
    const system = {
      protocol: multicastWithWorkload(withoutRepairs(evenly), delivery),
      nodes: [0, 1],
      network: "bag",
      timers: "quiet",
      begin: "idle",
      asks: (node: number) => (node === 0 ? [use(1)] : []),
      losses: 1,
    } as const;
    const found = explore(system);
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: agreement" } });
    const loop = found.path.slice(found.loop ?? 0).map(({ move }) => [move.kind, "timer" in move ? move.timer : ""]);
    expect(loop).toContainEqual(["timeout", "multicast.again"]);
    const repaired = explore({ ...system, protocol: multicastWithWorkload(ipMulticast(evenly), delivery) });
    expect(reaching(repaired, "delivered").verdict).toBe("holds");
  });
});
