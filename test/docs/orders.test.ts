/**
 * Checks the order demonstration: one scenario under every order of delivery, and the picture that shows them side by
 * side. `npm run pages -- orders` draws it.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parseScenario } from "../../src/experiment/scenario/index.ts";
import { drawOrderPanels } from "./order-panels.ts";
import { orderRuns } from "./order-runs.ts";

const file = "scenarios/order-demonstration.yaml";
const image = "docs/images/order-demonstration.svg";
const pathOf = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const { scenario } = parseScenario(readFileSync(pathOf(file), "utf8"), file);

if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(pathOf(image), drawOrderPanels(scenario));

test("every order keeps its promises, and no others", () => {
  const kept = orderRuns(scenario).map((run) => [
    run.protocol,
    Object.entries(run.kept).flatMap(([order, isKept]) => (isKept ? [order] : [])),
  ]);
  expect(kept).toEqual([
    ["basic-multicast", []],
    ["fifo", ["FIFO"]],
    ["causal", ["FIFO", "causal"]],
    ["isis", ["total"]],
    ["fifo-total", ["FIFO", "causal", "total"]],
    ["causal-total", ["FIFO", "causal", "total"]],
  ]);
});

test("violations of each order match the scenario", () => {
  const wrong = orderRuns(scenario).map((run) => [
    run.protocol,
    run.wrong.map(({ node, first, second }) => `${node}: ${scenario.labels[first]} ${scenario.labels[second]}`),
  ]);
  expect(Object.fromEntries(wrong)).toEqual({
    "basic-multicast": ["3: F2 F1", "3: C2 C1", "3: C3 C1"],
    fifo: ["3: C2 C1", "3: C3 C1"],
    causal: [],
    isis: ["0: F2 F1", "1: F2 F1", "2: F2 F1", "3: F2 F1"],
    "fifo-total": [],
    "causal-total": [],
  });
});

test("without total order, nodes deliver T1 and T2 in different orders", () => {
  for (const run of orderRuns(scenario)) {
    const pairs = run.different.map(({ first, second }) => [scenario.labels[first], scenario.labels[second]]);
    if (run.kept.total) expect(pairs).toEqual([]);
    else expect(pairs).toContainEqual(["T1", "T2"]);
  }
});

test("the picture is up to date, and appears on the pages that refer to it", () => {
  expect(existsSync(pathOf(image))).toBe(true);
  expect(readFileSync(pathOf(image), "utf8")).toBe(drawOrderPanels(scenario));
  expect(readFileSync(pathOf("docs/learn/multicast.md"), "utf8")).toContain("(../images/order-demonstration.svg)");
  for (const name of [scenario.protocol, ...Object.keys(scenario.variants)])
    expect(readFileSync(pathOf(`docs/learn/protocols/${name}.md`), "utf8")).toContain(
      "(../../images/order-demonstration.svg)",
    );
});
