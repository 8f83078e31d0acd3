import { expect, it } from "vitest";
import { random } from "../core/random.ts";
import { components } from "./liveness.ts";

function found(size: number, roots: number[], edges: number[][]): number[][] {
  const all: number[][] = [];
  components(
    size,
    roots,
    (state) => edges[state] as number[],
    (members) => all.push([...members].sort((a, b) => a - b)) > 0,
  );
  return all;
}

/**
 * Returns, for each pair of states, whether the second is reachable from the first, by repeated squaring of the edges.
 */
function reaches(size: number, edges: number[][]): boolean[][] {
  const to = edges.map((targets, from) => Array.from({ length: size }, (_, i) => i === from || targets.includes(i)));
  for (let via = 0; via < size; via++)
    for (let a = 0; a < size; a++)
      if (to[a]?.[via]) for (let b = 0; b < size; b++) if (to[via]?.[b]) (to[a] as boolean[])[b] = true;
  return to;
}

it("finds the sets of states that reach each other, each after the sets it leads to", () => {
  const source = random(11);
  for (let run = 0; run < 300; run++) {
    const size = 1 + source.below(9);
    const edges = Array.from({ length: size }, () => Array.from({ length: source.below(3) }, () => source.below(size)));
    const root = source.below(size);
    const to = reaches(size, edges);
    const parts = found(size, [root], edges);
    const reachable = Array.from({ length: size }, (_, i) => i).filter((i) => to[root]?.[i]);
    expect(parts.flat().sort((a, b) => a - b)).toEqual(reachable);
    for (const [at, part] of parts.entries()) {
      expect(part).toEqual(reachable.filter((i) => to[part[0] as number]?.[i] && to[i]?.[part[0] as number]));
      for (const later of parts.slice(at + 1)) expect(to[part[0] as number]?.[later[0] as number]).toBe(false);
    }
  }
});

it("handles graphs as deep as their number of states, and stops on request", () => {
  const size = 200_000;
  const next = Array.from({ length: size }, (_, i) => [(i + 1) % size]);
  expect(found(size, [0], next)).toHaveLength(1);
  let asked = 0;
  components(
    3,
    [0, 1, 2],
    () => [],
    () => ++asked < 2,
  );
  expect(asked).toBe(2);
});
