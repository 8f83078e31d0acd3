/** Ensures that every algorithm in the registry has its claims, its page, its story and its entries in the lists. */
import { describe, expect, it } from "vitest";
import { families } from "../../src/cli/new-algorithm.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { type HouseFile, house, isTest } from "./house.ts";

const LIST = "docs/learn/algorithms.md";
const GUARANTEES = "docs/guide/guarantees.md";

const HEADER_WORDS = ["Assumes", "Safety", "Liveness", "Cost"];

/** Assemblies of algorithms that have their own files and claims. */
const ASSEMBLIES = ["src/protocols/election/monitored.ts"];

/**
 * Returns the algorithm in a file, or null. An algorithm is `<problem>/<name>.ts`. A large one is `<problem>/<name>/`,
 * and its `<name>.ts` represents the folder.
 */
function algorithmIn(path: string): string | null {
  const match = /^src\/protocols\/[^/]+\/(?:([^/]+)\/)?([^/]+)\.ts$/.exec(path);
  if (match === null || isTest(path) || ASSEMBLIES.includes(path)) return null;
  const [, folder, name = ""] = match;
  return folder === undefined || folder === name ? name : null;
}

/** Finds unsorted names of the registry and of the file that it exports from. */
function outOfOrder({ path, text }: HouseFile): string[] {
  const entries = [...text.matchAll(/^ {2}"?([a-z][\w-]*)"?: entry\(/gm)].map(([, name = ""]) => name);
  const exported = [...text.matchAll(/^export (?:type )?(?:\*|\{[^}]*\}) from "(\.[^"]+)";$/gm)].map(
    ([, from = ""]) => from,
  );
  return [entries, exported].flatMap((names) =>
    names.flatMap((name, i) => {
      const before = names[i - 1] ?? "";
      return placeOf(before) <= placeOf(name) ? [] : [`${path}: ${name} comes after ${before}`];
    }),
  );
}

/** Sort key that puts files before the contents of folders, as the formatter does. */
const placeOf = (name: string): string => name.replace(/\.ts$/, "").replaceAll("/", " ");

/** Reports missing files and list entries of the algorithms in `files`, and entries without an algorithm. */
function gaps(files: readonly HouseFile[], registered: readonly string[]): string[] {
  const paths = new Set(files.map(({ path }) => path));
  const list = files.find(({ path }) => path === LIST)?.text ?? "";
  const algorithms = files.flatMap((file) => {
    const name = algorithmIn(file.path);
    return name === null ? [] : [{ name, file }];
  });
  const aroundFiles = algorithms.flatMap(({ name, file: { path, text } }) => {
    const header = /^\/\*\*([\s\S]*?)\*\//.exec(text)?.[1] ?? "";
    const words = HEADER_WORDS.filter((word) => !new RegExp(`^ \\* ${word} {2}`, "m").test(header));
    return [
      ...words.map((word) => `${path}: the header has no line “${word}”`),
      ...[`docs/learn/protocols/${name}.md`, path.replace(/\.ts$/, ".test.ts")]
        .filter((wanted) => !paths.has(wanted))
        .map((wanted) => `${path}: ${wanted} is missing`),
      ...(registered.includes(name) ? [] : [`${path}: ${name} is not in the registry`]),
    ];
  });
  const scenarios = files.filter(({ path }) => /^scenarios\/.*\.yaml$/.test(path));
  const readme = files.find(({ path }) => path === "README.md")?.text ?? "";
  const aroundNames = registered.flatMap((name) => [
    ...(scenarios.some(({ text }) => new RegExp(`^protocol: ${name}$`, "m").test(text))
      ? []
      : [`scenarios: none for ${name}`]),
    ...(readme.includes(`(docs/learn/protocols/${name}.md)`)
      ? []
      : [`README.md does not list ${name}: npm run pages -- lists`]),
    ...(algorithms.some((algorithm) => algorithm.name === name) ? [] : [`${name} has no file with that name`]),
    ...(list.includes(`| [\`${name}\`](protocols/${name}.md) |`) ? [] : [`${LIST} has no row for ${name}`]),
  ]);
  const tables = files.filter(({ path }) => /^bench\/table\/.*\.ts$/.test(path)).map(({ text }) => text);
  const guarantees = files.find(({ path }) => path === GUARANTEES)?.text ?? "";
  const inUse = algorithms.flatMap(({ name, file: { path } }) => {
    if (!registered.includes(name)) return [];
    const isMeasured = !path.startsWith("src/protocols/mutex/") || tables.some((text) => text.includes(`"${name}"`));
    const isJoined = !/^src\/protocols\/(mutex|election)\//.test(path) || guarantees.includes(`\`${name}\``);
    return [
      ...(isMeasured ? [] : [`bench/table measures no cost for ${name}`]),
      ...(isJoined ? [] : [`${GUARANTEES} has no row for ${name}`]),
    ];
  });
  const aroundPages = files.flatMap(({ path }) => {
    const name = /^docs\/learn\/protocols\/([^/]+?)(?:\/[^/]+)?\.md$/.exec(path)?.[1];
    return name === undefined || registered.includes(name) ? [] : [`${path}: unknown protocol`];
  });
  return [...aroundFiles, ...aroundNames, ...inUse, ...aroundPages];
}

describe("the catalogue", () => {
  it("every algorithm has its header, page, test, scenario, registry line and rows in the lists", () => {
    expect(protocolNames.length).toBeGreaterThan(0);
    expect(gaps(house, protocolNames)).toEqual([]);
  });

  it.each(protocolNames)("%s states its cost and its source", (name) => {
    const { costs, source, assumes } = protocolNamed(name).model();
    expect(costs.length).toBeGreaterThan(0);
    expect(source).not.toBe("");
    expect(assumes.length).toBeGreaterThan(0);
  });

  it.each(families)("the family %s has a page with its requirements, and a skeleton", (family) => {
    const paths = house.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([`docs/learn/families/${family}.md`, `skeletons/${family}/registry.ts`]),
    );
    const page = house.find(({ path }) => path === `docs/learn/families/${family}.md`)?.text ?? "";
    for (const section of ["command", "event", "Workload", "Properties", "view", "Registry line"])
      expect(page).toContain(section);
  });

  it("the registry's lists and exports are sorted, so that each name has one place", () => {
    const lists = house.filter(
      ({ path, text }) => /^src\/protocols\/[^/]+\.ts$/.test(path) && !isTest(path) && text !== "",
    );
    expect(lists.flatMap(outOfOrder)).toEqual([]);
    expect(outOfOrder({ path: "a.ts", text: '  ring: entry(\n  "fast-paxos": entry(\n' })).toEqual([
      "a.ts: fast-paxos comes after ring",
    ]);
    expect(
      outOfOrder({ path: "a.ts", text: 'export { b } from "./b.ts";\nexport {\n  a,\n} from "./a.ts";\n' }),
    ).toEqual(["a.ts: ./a.ts comes after ./b.ts"]);
  });

  const header = "/**\n * Ring.\n *\n * Assumes   a\n * Safety    b\n * Liveness  c\n * Cost      d\n */\n";
  const whole: HouseFile[] = [
    { path: "src/protocols/election/ring.ts", text: header },
    { path: "src/protocols/election/ring.test.ts", text: "" },
    { path: "docs/learn/protocols/ring.md", text: "" },
    { path: LIST, text: "| [`ring`](protocols/ring.md) |" },
    { path: "README.md", text: "[`ring`](docs/learn/protocols/ring.md)" },
    { path: GUARANTEES, text: "| `ring` | two leaders |" },
    { path: "scenarios/ring-two-callers.yaml", text: "name: two callers\nprotocol: ring\n" },
  ];
  const without = (path: string): HouseFile[] => whole.filter((file) => file.path !== path);

  it("accepts a complete algorithm", () => {
    expect(gaps(whole, ["ring"])).toEqual([]);
  });

  it.each([
    [
      "a header word",
      [...without(whole[0]?.path ?? ""), { path: "src/protocols/election/ring.ts", text: "/** */" }],
      4,
    ],
    ["the page", without("docs/learn/protocols/ring.md"), 1],
    ["the story test", without("src/protocols/election/ring.test.ts"), 1],
    ["the place in the README", without("README.md"), 1],
    ["a scenario", without("scenarios/ring-two-callers.yaml"), 1],
    ["the row in the list of algorithms", without(LIST), 1],
    ["the part that join() needs", without(GUARANTEES), 1],
    ["the file", without("src/protocols/election/ring.ts"), 1],
  ])("reports missing: %s", (_what, files, problems) => {
    expect(gaps(files, ["ring"])).toHaveLength(problems);
  });

  it("reports a missing cost of a mutual exclusion", () => {
    const files = whole.map(({ path, text }) => ({
      path: path.replace("protocols/election", "protocols/mutex"),
      text,
    }));
    expect(gaps(files, ["ring"])).toEqual(["bench/table measures no cost for ring"]);
    expect(gaps([...files, { path: "bench/table/mutex.ts", text: 'costsAtRest("ring", …' }], ["ring"])).toEqual([]);
  });

  it("reports a missing registry line", () => {
    expect(gaps(whole, [])).toEqual([
      "src/protocols/election/ring.ts: ring is not in the registry",
      "docs/learn/protocols/ring.md: unknown protocol",
    ]);
  });
});
