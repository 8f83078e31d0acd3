import { expect, it } from "vitest";
import { explore } from "../check/index.ts";
import { systemFor } from "../check/suite.ts";
import { storyOf } from "./check-story.ts";

it("a counterexample in words: what happens, what it leads to, and how all stand in the end", () => {
  const system = systemFor({ protocol: "ricart-agrawala", nodes: [0, 1], crashes: 1, asked: [0] });
  const { path, property } = explore(system);
  expect(property?.name).toBe("ME2 liveness");
  expect(storyOf(system.protocol, system.nodes, path)).toEqual({
    steps: [
      {
        deed: "node 0 is told: user.use entries 1",
        consequences: ["sends mutex.request time 1 to 1", "says user.needed", "is now wanted"],
      },
      { deed: "node 1 crashes", consequences: [] },
    ],
    standing: [
      { node: 0, role: "wanted", state: expect.stringContaining('"awaited":[1]') },
      { node: 1, role: "down", state: "" },
    ],
  });
});
