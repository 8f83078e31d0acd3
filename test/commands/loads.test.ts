/** Checks which modules each command loads, so that a small command starts quickly. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { CLI } from "../e2e/cluster-under-test.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "coterie-loads-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Loaded {
  readonly packages: readonly string[];
  /** The project's own modules, below `src`, that the loaded files contain. */
  readonly own: readonly string[];
}

/** Runs a command with hooks that record every module. */
async function loadedBy(...words: string[]): Promise<Loaded> {
  const file = join(mkdtempSync(join(folder, "run-")), "modules.txt");
  const hooks = `
    import { appendFileSync } from "node:fs";
    export async function load(url, context, next) {
      appendFileSync(${JSON.stringify(file)}, url + "\\n");
      return next(url, context);
    }`;
  const register = `import { register } from "node:module"; register(${JSON.stringify(dataUrl(hooks))});`;
  // Some commands exit with code 1.
  await promisify(execFile)(process.execPath, ["--import", dataUrl(register), CLI, ...words]).catch(() => {});
  const urls = readFileSync(file, "utf8").trim().split("\n");
  const packages = urls.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []);
  const own = urls.filter((url) => url.startsWith(new URL(`file://${ROOT}dist/`).href));
  return { packages: [...new Set(packages)].sort(), own: own.flatMap(modulesIn) };
}

/** Returns the modules in a bundled file. The bundler writes each module's name above its code. */
const modulesIn = (url: string): string[] =>
  [...readFileSync(new URL(url), "utf8").matchAll(/^\/\/(?:#region)? src\/(\S+)\.ts$/gm)].map(([, name = ""]) => name);

const dataUrl = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;

test.each(["--version", "--help"])("coterie %s: commander, and six files", async (word) => {
  const { packages, own } = await loadedBy(word);
  expect(packages).toEqual(["commander"]);
  expect(own.length).toBeLessThanOrEqual(6);
});

test.each([
  ["voting-sets 3", ["@noble/hashes", "commander"], /^(sim|check|runtime.(transport|journal)|cluster)/],
  ["protocols bully", ["@noble/hashes", "commander"], /^(sim|check|runtime.(transport|journal)|cluster)/],
  ["trace none.jsonl", ["@noble/hashes", "commander"], /^(sim|check|runtime.(transport|journal)|cluster)/],
  [
    "sim bully",
    ["@noble/hashes", "commander", "zod"],
    /^(check.(?!model-options)|runtime.(transport|journal)|cluster)/,
  ],
  ["status --admin http://127.0.0.1:1", ["commander", "zod"], /^(protocols|sim|check|cluster.join)/],
  ["lock x --endpoints ftp://a -- true", ["commander"], /^(protocols.index|sim|check|cluster.join)/],
])("coterie %s: no package except %j, and nothing like %s", async (words, packages, needless) => {
  const loaded = await loadedBy(...words.split(" "));
  expect(loaded.packages).toEqual(packages);
  expect(loaded.own.filter((file) => needless.test(file))).toEqual([]);
});
