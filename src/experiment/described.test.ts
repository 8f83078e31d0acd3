import { expect, test } from "vitest";
import { COST_SIZES, described } from "./described.ts";

test("describes an algorithm by its header, with computed costs", () => {
  const { family, source, costs, options, variants } = described("ricart-agrawala");
  expect(family).toBe("mutual exclusion");
  expect(source).toContain("Ricart & Agrawala");
  const [entry] = costs;
  expect(entry?.messages).toEqual(Object.fromEntries(COST_SIZES.map((nodes) => [nodes, 2 * (nodes - 1)])));
  expect(options).toContainEqual({ name: "workload.stayMs", default: 5, help: "how long a node stays inside" });
  expect(variants.map(({ name }) => name)).toContain("roucairol-carvalho");
  expect(() => described("nobody")).toThrow(/nobody/);
});
