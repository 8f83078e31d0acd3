/**
 * Simulates a later release: `src/cluster/join.ts?release=later` loads `join.ts` and its imports with the changes
 * below. Files without a change are shared by all releases. All changes are of a kind that docs/operate/upgrade.md
 * allows, except for `careless`, which breaks its rules. `present` is the current release with low limits. There is
 * also a release for each seeded bug.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { clusterBugs } from "../seeded-bugs/cluster.ts";
import { patched } from "../seeded-bugs/patch.ts";

interface Change {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const SERVICE = "src/protocols/service/coordination-service";

/** A new wire version, and a new field at the end of each hello. */
export const laterHandshake: readonly Change[] = [
  {
    name: "wire version",
    file: "src/runtime/transport/frames.ts",
    find: "export const WIRE_VERSION = 1;",
    replace: "export const WIRE_VERSION = 2;",
  },
  {
    name: "what a hello says",
    file: "src/runtime/transport/frames.ts",
    find: "helloFields.write(hello, into)),\n",
    replace: "{\n      helloFields.write(hello, into);\n      into.natural(60_000);\n    }),\n",
  },
  {
    name: "what is read of a hello",
    file: "src/runtime/transport/frames.ts",
    find: "    const hello = helloFields.read(from);\n",
    replace: "    const hello = helloFields.read(from);\n    if (from.position < from.end) from.natural();\n",
  },
];

/** A new variant of a slot's records, which replaces the previous one. */
const records: readonly Change[] = [
  {
    name: "a record's shape",
    file: `${SERVICE}/session-vocabulary.ts`,
    find: "record: { life: { run: natural, life: natural } },",
    replace: "record: { life: { run: natural, life: natural }, lived: { life: natural, run: natural } },",
  },
  {
    name: "a record that is read",
    file: `${SERVICE}/session.ts`,
    find: "    replay: {\n",
    replace:
      "    replay: {\n      lived(state, { run, life }) {\n        state.run = run;\n        state.life = life;\n      },\n",
  },
  {
    name: "a record that is written",
    file: `${SERVICE}/session.ts`,
    find: `ctx.compact([{ type: "life", run: state.run, life: state.life }]);`,
    replace: `ctx.compact([{ type: "lived", run: state.run, life: state.life }]);`,
  },
];

/** A new log command, which members of the later release use. */
const commands: readonly Change[] = [
  {
    name: "a command's shape",
    file: `${SERVICE}/operations.ts`,
    find: "  add: { name, by: real },\n",
    replace: "  add: { name, by: real },\n  plus: { name, by: real },\n",
  },
  {
    name: "a command that is applied",
    file: `${SERVICE}/apply.ts`,
    find: `    case "add":\n`,
    replace: `    case "plus":\n      if (on.data.version < 2) throw new Error("plus came before version 2");\n      return applyToCounter(on, { ...operation, type: "add" });\n    case "add":\n`,
  },
  {
    name: "a command that is asked for",
    file: "src/cluster/services/state/local-counter.ts",
    find: `submit({ type: "add", name: this.name, by }`,
    replace: `submit({ type: "plus", name: this.name, by }`,
  },
];

const stateMachine: Change = {
  name: "state machine version",
  file: `${SERVICE}/operations.ts`,
  find: "export const STATE_MACHINE_VERSION = 1;",
  replace: "export const STATE_MACHINE_VERSION = 2;",
};

/**
 * Limits that are low enough for a short run to reach them, both for snapshots of the log and for the compaction of
 * changes.
 */
const lowBounds: readonly Change[] = [
  {
    name: "when a snapshot is taken",
    file: `${SERVICE}/replica.ts`,
    find: "  snapshotChars: whole(\n    1_048_576,\n",
    replace: "  snapshotChars: whole(\n    8_000,\n",
  },
  {
    name: "how many entries are kept behind a snapshot",
    file: "src/protocols/consensus/raft/options.ts",
    find: "    keptEntries: whole(\n      64,\n",
    replace: "    keptEntries: whole(\n      8,\n",
  },
  {
    name: "how many changes are remembered",
    file: `${SERVICE}/state.ts`,
    find: "  maxHistoryBytes: whole(\n    67_108_864,",
    replace: "  maxHistoryBytes: whole(\n    15_000,",
  },
];

const releases: Readonly<Record<string, readonly Change[]>> = {
  present: lowBounds,
  later: [...laterHandshake, ...records, ...commands, stateMachine, ...lowBounds],
  careless: [...laterHandshake, ...records, ...commands, ...lowBounds],
  ...Object.fromEntries(clusterBugs.map((bug) => [bug.name, [bug, ...lowBounds]])),
};

const SRC = fileURLToPath(new URL("../../src/", import.meta.url));

/** All releases share the error classes, because tests compare them. */
const isThrown = (file: string): boolean =>
  file.endsWith("/core/errors.ts") || file.endsWith("/services/coordination-error.ts");

/** Matches all imports and exports except type-only ones. */
const IMPORT = /(?:^(?:import|export) (?!type )[^;]*?|\bimport\()"(\.[^"]+)"/gm;

/** Returns the importers of each file in `src`. */
function importersBelow(folder: string): ReadonlyMap<string, readonly string[]> {
  const importers = new Map<string, string[]>();
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  for (const file of files.map((each) => join(folder, each)))
    for (const [, source = ""] of readFileSync(file, "utf8").matchAll(IMPORT)) {
      const imported = join(dirname(file), source);
      importers.set(imported, [...(importers.get(imported) ?? []), file]);
    }
  return importers;
}

/** Returns the files that a release does not share: the changed files and their importers. */
function ownFiles(changes: readonly Change[]): ReadonlySet<string> {
  const importers = importersBelow(SRC);
  const own = new Set(changes.map(({ file }) => join(SRC, "..", file)));
  for (const file of own) for (const importer of importers.get(file) ?? []) own.add(importer);
  return own;
}

export function laterRelease(): Plugin {
  const own = new Map<string, ReadonlySet<string>>();
  const isOwn = (file: string, name: string): boolean => {
    const files = own.get(name) ?? ownFiles(releases[name] ?? []);
    own.set(name, files);
    return files.has(file) && !isThrown(file);
  };
  return {
    name: "later-release",
    enforce: "pre",
    async resolveId(source, importer) {
      const [file = "", name] = splitOf(importer ?? "");
      if (name === null || !source.startsWith(".")) return null;
      const resolved = await this.resolve(source, file, { skipSelf: true });
      return resolved !== null && isOwn(resolved.id, name) ? `${resolved.id}?release=${name}` : resolved;
    },
    transform(code, id) {
      const [file, name] = splitOf(id);
      const changes = name === null ? [] : (releases[name] ?? []).filter((each) => file.endsWith(each.file));
      return changes.length === 0 ? null : { code: changes.reduce(patched, code), map: null };
    },
  };
}

/** Splits an id into the file and the requested release. */
function splitOf(id: string): [string, string | null] {
  const [file = "", query = ""] = id.split("?");
  return [file, new URLSearchParams(query).get("release")];
}
