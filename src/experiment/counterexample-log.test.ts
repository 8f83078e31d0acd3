import { expect, it } from "vitest";
import { explore } from "../check/index.ts";
import { systemFor } from "../check/suite.ts";
import { protocolNamed } from "../protocols/index.ts";
import { logOf, waitCycle } from "./counterexample-log.ts";

it("lists the consequences of a step before a crash within it", () => {
  const words = { protocol: "basic-multicast", nodes: [0, 1, 2], crashes: 1, withinStep: true, initiators: [0] };
  const system = systemFor(words);
  const { family } = protocolNamed("basic-multicast");
  expect(logOf({ ...system, family }, system.nodes, explore(system).path).steps[0]).toEqual({
    deed: "node 0 receives command workload.send messages 1, and crashes within this step",
    consequences: ["sends multicast.multicast number 1 payload 0.1 to 1", "emits workload.said payload 0.1 group 0"],
  });
});

it("lists the moves, their consequences, the final states and the waiting nodes", () => {
  const system = systemFor({ protocol: "ricart-agrawala", nodes: [0, 1], crashes: 1, initiators: [0] });
  const { path, property } = explore(system);
  expect(property?.name).toBe("ME2 liveness");
  expect(logOf({ ...system, family: protocolNamed("ricart-agrawala").family }, system.nodes, path)).toMatchObject({
    steps: [
      {
        deed: "node 0 receives command workload.use entries 1",
        consequences: ["sends mutex.request time 1 to 1", "emits workload.needed", "is now wanted"],
      },
      { deed: "node 1 crashes", consequences: [] },
    ],
    standing: [
      { node: 0, role: "wanted", state: { mutex: { section: { awaited: [1] } } } },
      { node: 1, role: "down", state: null },
    ],
    waits: [{ node: 0, unanswered: [1] }],
  });
});

it("lists replies as consequences", () => {
  const { family, model } = protocolNamed("ricart-agrawala");
  const move = { kind: "command", node: 0, command: { type: "read" } } as const;
  const replies = [{ request: 7, reply: { type: "value", payload: "a" } }];
  const taken = { move, sends: [], events: [], replies, choices: [], journal: null, states: [null] };
  const { steps } = logOf({ protocol: model({}), family }, [0], [taken] as never);
  expect(steps).toEqual([{ deed: "node 0 receives command read", consequences: ["replies value payload a"] }]);
});

it("finds the cycle of waiting nodes in a deadlock", () => {
  const nodes = [0, 1, 2];
  const system = systemFor({ protocol: "maekawa", nodes });
  const { waits } = logOf({ ...system, family: protocolNamed("maekawa").family }, nodes, explore(system).path);
  expect(waitCycle(waits)).toEqual([0, 1, 2]);
  expect(waitCycle([{ node: 0, unanswered: [1] }])).toBeNull();
});
