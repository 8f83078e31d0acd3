/**
 * Ensures that imports follow one direction: `core ← {protocols, driver ← trace} ← {sim, check ← history, runtime} ←
 * {experiment, cluster ← client} ← {engines ← bench, testing, cli, studio}`. `experiment` may import `sim` and `check`,
 * but not `runtime`.
 */
import { describe, expect, it } from "vitest";
import { code, type HouseFile, importsOf, isTest, targetOf } from "./house.ts";

/** The parts whose modules each part may import in addition to its own. The three drivers do not import each other. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  core: [],
  protocols: ["core"],
  driver: ["core"],
  trace: ["core", "driver"],
  sim: ["core", "driver", "protocols", "trace"],
  history: ["core"],
  check: ["core", "driver", "protocols", "trace", "history"],
  runtime: ["core", "driver", "protocols", "trace"],
  experiment: ["core", "protocols", "trace", "sim", "check"],
  cluster: ["core", "protocols", "trace", "sim", "check", "experiment", "runtime"],
  client: ["core", "protocols", "runtime", "cluster"],
  engines: ["core", "protocols", "runtime", "cluster", "client"],
  integrations: ["cluster"],
  testing: ["core", "sim", "runtime", "cluster", "client"],
  cli: ["core", "protocols", "trace", "sim", "history", "check", "experiment", "runtime", "cluster", "client"],
  studio: ["core", "protocols", "trace", "sim", "check", "experiment"],
  site: ["studio"], // All pages share the style.
  bench: ["core", "protocols", "trace", "sim", "check", "experiment", "runtime", "cluster", "engines"],
  // The public entry point, src/index.ts.
  entry: ["core", "protocols", "trace", "sim", "check", "runtime", "cluster", "client"],
};

/** The only exceptions are type-only imports: the studio runs in a browser, and the cluster on Node. */
const mayImportTypes: Readonly<Record<string, readonly string[]>> = { studio: ["cluster"] };

/** Returns the part that a path belongs to: a folder of `src`, `entry`, `studio`, `site` or `bench`. */
function partOf(path: string): string {
  if (/^src\/[^/]+$/.test(path)) return "entry";
  return /^(?:src\/)?([^/]+)\//.exec(path)?.[1] ?? path;
}

function againstTheArrows(files: readonly HouseFile[]): string[] {
  return files.flatMap((file) => {
    const from = partOf(file.path);
    return importsOf(file).flatMap(({ specifier, line, isTypeOnly }) => {
      const target = targetOf(file.path, specifier);
      const to = target === null ? from : partOf(target);
      const allowed = [from, ...(mayImport[from] ?? []), ...(isTypeOnly ? (mayImportTypes[from] ?? []) : [])];
      return allowed.includes(to) ? [] : [`${file.path}:${line} ${from} must not import ${specifier}`];
    });
  });
}

/** Finds import cycles such as `a → b → a`, each once. `place` determines the units: files, or folders of files. */
function cycles(files: readonly HouseFile[], place: (path: string) => string | null): string[] {
  const graph = new Map<string, Set<string>>();
  for (const file of files) {
    const from = place(file.path);
    const targets = importsOf(file).map(({ specifier }) => targetOf(file.path, specifier));
    const places = targets.flatMap((target) => (target === null ? [] : (place(target) ?? [])));
    if (from === null) continue;
    const known = graph.get(from) ?? new Set();
    for (const to of places) if (to !== from) known.add(to);
    graph.set(from, known);
  }
  const found: string[] = [];
  const done = new Set<string>();
  function visit(at: string, path: readonly string[]): void {
    if (path.includes(at)) return void found.push([...path.slice(path.indexOf(at)), at].join(" → "));
    if (done.has(at)) return;
    for (const next of graph.get(at) ?? []) visit(next, [...path, at]);
    done.add(at);
  }
  for (const at of graph.keys()) visit(at, []);
  return found;
}

const ownPath = (path: string): string => path;
/** Returns a problem such as `election` or `mutex`. Files directly in `src/protocols` serve all problems. */
const problemFolder = (path: string): string | null => /^src\/protocols\/([^/]+)\//.exec(path)?.[1] ?? null;

const inProduct = code.filter(({ path }) => /^(src|studio|site|bench)\//.test(path) && !isTest(path));

describe("imports", () => {
  it("every part has its arrows", () => {
    const parts = new Set(inProduct.map(({ path }) => partOf(path)));
    expect([...parts].filter((part) => mayImport[part] === undefined)).toEqual([]);
  });

  it("arrows point one way", () => {
    expect(againstTheArrows(inProduct)).toEqual([]);
  });

  it.each([
    ["src/core/a.ts", 'import { b } from "../protocols/b.ts";'],
    ["src/core/a.ts", 'import type { B } from "../runtime/b.ts";'],
    ["src/protocols/election/a.ts", 'export * from "../../sim/b.ts";'],
    ["src/protocols/election/a.ts", 'await import("../../runtime/b.ts");'],
    ["src/core/a.ts", 'export type B = import("../runtime/b.ts").B;'],
    ["src/sim/a.ts", 'import "../runtime/b.ts";'],
    ["src/runtime/a.ts", 'import { b } from "../sim/b.ts";'],
    ["src/sim/a.ts", 'import { b } from "../experiment/b.ts";'],
    ["src/experiment/a.ts", 'import { b } from "../runtime/b.ts";'],
    ["src/cluster/a.ts", 'import { b } from "../cli/b.ts";'],
    ["studio/src/a.ts", 'import { b } from "../../src/cluster/b.ts";'],
    ["studio/src/a.ts", 'import { type B } from "../../src/cluster/b.ts";'],
    ["studio/src/a.svelte", '<script lang="ts">import { b } from "../../src/runtime/b.ts";</script><p>a</p>'],
    ["src/runtime/a.ts", 'import { b } from "../../bench/b.ts";'],
  ])("%s: %s is rejected", (path, text) => {
    expect(againstTheArrows([{ path, text }])).toHaveLength(1);
  });

  it("the studio may import types of the cluster", () => {
    const text = 'import type { B } from "../../src/cluster/b.ts";';
    expect(againstTheArrows([{ path: "studio/src/a.ts", text }])).toEqual([]);
  });

  it("no file imports itself indirectly, not even for types", () => {
    expect(cycles(inProduct, ownPath)).toEqual([]);
  });

  it("no two families of protocols import each other", () => {
    expect(cycles(inProduct, problemFolder)).toEqual([]);
  });

  it("a cycle is found", () => {
    const files = [
      { path: "src/protocols/election/a.ts", text: 'import { b } from "../mutex/b.ts";' },
      { path: "src/protocols/mutex/b.ts", text: 'import type { A } from "../election/a.ts";' },
    ];
    expect(cycles(files, ownPath)).toEqual([
      "src/protocols/election/a.ts → src/protocols/mutex/b.ts → src/protocols/election/a.ts",
    ]);
    expect(cycles(files, problemFolder)).toEqual(["election → mutex → election"]);
  });
});
