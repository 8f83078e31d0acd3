/** Tests comparisons of protocols: each result equals the result of `coterie sim` for the same words. */
import { describe, expect, it } from "vitest";
import { simulate } from "../../../../src/experiment/index.ts";
import { TestedLaboratory } from "./laboratory-under-test.ts";

const laboratory = new TestedLaboratory();

describe("comparing", () => {
  it("shows the simulator's result for each protocol", async () => {
    const compared = await laboratory.compare({ protocol: "bully", with: "ring,chang-roberts", nodes: "6", call: "1" });
    expect(compared.map(({ name }) => name)).toEqual(["bully", "ring", "chang-roberts"]);
    for (const { name, run } of compared) {
      const { messages, timeMs, properties } = simulate({ protocol: name, nodes: 6, call: [1] });
      expect(run?.cost.total).toBe(messages.total);
      expect(run?.cost.byType).toEqual(messages.byType);
      expect(run?.steps.at(-1)?.at).toBe(timeMs);
      expect(run?.properties.map(({ verdict }) => verdict)).toEqual(properties.map(({ verdict }) => verdict));
    }
    const looks = await laboratory.looks(compared.map(({ run }) => (run?.steps.length ?? 0) - 1));
    expect(looks.map((look) => look?.headline)).toEqual(Array(3).fill("Node 5 leads."));
    expect(looks.map((look) => look?.messages)).toEqual(compared.map(({ run }) => run?.cost.total));
  });

  it("runs a scenario's steps under other protocols", { tags: ["long"] }, async () => {
    const [maekawa, sanders] = await laboratory.compare({
      scenario: "maekawa-deadlock",
      protocol: "maekawa",
      with: "maekawa-sanders",
    });
    const broken = (run: typeof maekawa) =>
      run?.run?.properties.flatMap(({ name, verdict }) => (verdict === "violated" ? [name] : []));
    expect(broken(maekawa)).toEqual(["ME2 liveness", "ME2 no starvation"]);
    expect(broken(sanders)).toEqual([]);
    expect(sanders?.run?.drawing.nodes).toEqual([1, 2, 3]);
  });

  it("ends runs that never become idle", { tags: ["long"] }, async () => {
    const [, epochs] = await laboratory.compare({
      scenario: "bully-a-highest-crashed",
      protocol: "bully",
      with: "epoch-bully",
    });
    expect(epochs?.problem).toBe("");
    expect(epochs?.run?.steps.at(-1)?.at).toBeLessThanOrEqual(1_000);
  });

  it("reports protocols that cannot take the steps, and shows the others", async () => {
    const [bully, raft] = await laboratory.compare({ protocol: "bully", with: "raft", call: "0" });
    expect(bully?.run?.title).toBe("bully, 5 nodes");
    expect(raft?.run).toBeNull();
    expect(raft?.problem).toMatch(/--call/);
    const [, ring] = await laboratory.compare({
      scenario: "ricart-agrawala-two-at-once",
      protocol: "ricart-agrawala",
      with: "token-ring",
    });
    expect(ring?.problem).toMatch(/begins with states of ricart-agrawala/);
  });

  it("accepts at most six protocols", async () => {
    await expect(laboratory.compare({ protocol: "bully", with: "a,b,c,d,e,f" })).rejects.toThrow(/at most 6 .* got 7/);
  });
});
