import { describe, expect, it } from "vitest";
import { fewestFaults } from "./explore.ts";
import { systemFor } from "./suite.ts";

const mutex = (more: object) => systemFor({ protocol: "ricart-agrawala", nodes: [0, 1], ...more });

describe("the fewest faults that violate a property", () => {
  it("one lost message or one crash violates ME2; none is proven harmless", () => {
    for (const faults of [{ losses: 2 }, { crashes: 2 }, { losses: 1, crashes: 1, duplications: 1 }])
      expect(fewestFaults(mutex(faults))).toMatchObject({
        breaking: 1,
        harmless: 0,
        exploration: { verdict: "violated" },
      });
  });

  it("two nodes inside require a crash and a recovery", () => {
    const { breaking, harmless, exploration } = fewestFaults(
      mutex({ nodes: [0, 1, 2], initiators: [0, 1], crashes: 2, recoveries: 2, property: "ME1 safety" }),
    );
    expect([breaking, harmless]).toEqual([2, 1]);
    expect(
      exploration.path.flatMap(({ move }) => (move.kind === "crash" || move.kind === "start" ? [move.kind] : [])),
    ).toEqual(["crash", "start"]);
  });

  it("reports how many faults are harmless, and the number that a bound left open", () => {
    const duplicated = mutex({ duplications: 2, property: "ME1 safety" });
    expect(fewestFaults(duplicated)).toMatchObject({ breaking: null, harmless: 2 });
    expect(fewestFaults({ ...duplicated, maxStates: 5 }, 1)).toMatchObject({
      breaking: null,
      harmless: -1,
      exploration: { verdict: "unknown" },
    });
  });

  it("rejects options that allow no fault", () => {
    expect(() => fewestFaults(mutex({}))).toThrow("expected crashes, recoveries, losses or duplications to be above 0");
  });
});
