/**
 * Checks `coterie new`: the new files run, pass their own tests and fit into the repository. Impossible requests are
 * rejected.
 */
import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { families } from "../../src/cli/new-algorithm.ts";
import { CLI } from "../e2e/cluster-under-test.ts";
import { coterie } from "./run-here.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const elsewhere = mkdtempSync(join(tmpdir(), "coterie-new-"));
const copy = join(elsewhere, "copy");
/** Inside the package, so that `import "coterie"` resolves to it. */
const own = join(ROOT, "build", "own-project");
afterAll(() => {
  rmSync(elsewhere, { recursive: true, force: true });
  rmSync(own, { recursive: true, force: true });
});

/** Returns the output of a command. If the command fails, the error contains it. */
async function run(cwd: string, ...words: string[]): Promise<string> {
  const [program = "", ...args] = words;
  const env = { ...process.env, CI: "1", VITEST: "", NO_COLOR: "1" };
  const { stdout } = await promisify(execFile)(program, args, { cwd, env, maxBuffer: 1e8 }).catch((error: unknown) => {
    const { message, stdout, stderr } = error as Error & { stdout: string; stderr: string };
    throw new Error(`${message}\n${stdout}\n${stderr}`);
  });
  return stdout;
}

const tool = (name: string): string => join(ROOT, "node_modules", ".bin", name);

/** Returns a name that no algorithm has. */
const nameOf = (family: string): string => `fresh-${family}`;

const spoken = ["--title", "Fresh & Lock", "--summary", "one lock, always fresh", "--scenario", "two-wait"];

/** Checks that the title, the summary and the scenario's name appear in every file that should contain them. */
function holdsWords(root: string): void {
  const text = (path: string): string => readFileSync(join(root, path), "utf8");
  expect(text("src/protocols/mutex/fresh-mutex.ts")).toContain(" * Fresh & Lock: one lock, always fresh.\n");
  expect(text("docs/learn/protocols/fresh-mutex.md")).toMatch(/^# Fresh & Lock\n\nOne lock, always fresh\. /);
  expect(text("scenarios/fresh-mutex-two-wait.yaml")).toContain('name: "Fresh & Lock: two wait"');
  expect(existsSync(join(root, "src/protocols/mutex/stories/fresh-mutex-two-wait.txt"))).toBe(true);
  expect(text("src/protocols/mutexes.ts")).toContain(
    '"fresh-mutex": entry(mutualExclusion, "one lock, always fresh", freshMutex, {',
  );
  expect(text("docs/learn/algorithms.md")).toContain(
    "| [`fresh-mutex`](protocols/fresh-mutex.md) | one lock, always fresh |",
  );
  expect(text("CHANGELOG.md")).toContain("- `fresh-mutex` is new: one lock, always fresh. `freshMutex()`");
  expect(text("docs/guide/guarantees.md")).toContain("| `fresh-mutex` | yes |");
  expect(text("bench/table/mutex.ts")).toContain('...costsAtRest("fresh-mutex", () => freshMutex(), {');
}

describe("coterie new", () => {
  test("in a checkout: all families compile, pass their tests and tidy, and run in simulator and checker", {
    tags: ["long"],
  }, async () => {
    // Another test may be building the site in .temp.
    const left = new Set(["node_modules", "dist", "build", "coverage", ".git", ".temp"]);
    cpSync(ROOT, copy, { recursive: true, filter: (source) => !left.has(basename(source)) });
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    for (const family of families) {
      const words = family === "mutex" ? spoken : [];
      const printed = await run(copy, process.execPath, CLI, "new", family, nameOf(family), ...words);
      expect(printed).toContain(`new      src/protocols/${family}/${nameOf(family)}.ts\n`);
      expect(printed).toContain("changed  src/protocols/index.ts\n");
    }
    // The file must have no line before this comment.
    expect(readFileSync(join(copy, "src/protocols/index.ts"), "utf8")).toMatch(/^\/\*\*\n \* All textbook algorithms/);
    holdsWords(copy);
    await run(copy, tool("tsc"), "-p", ".");
    await run(copy, tool("vite"), "build", "--logLevel", "warn");
    await run(copy, tool("biome"), "check", "--error-on-warnings", "src", "bench", "scenarios", "skeletons");
    const ownTests = families.map((family) => `src/protocols/${family}/${nameOf(family)}.test.ts`);
    await run(copy, tool("vitest"), "run", "--project", "unit", ...ownTests, "test/tidy", "src/protocols/family");
    const ofRegistry = ["test/drivers/registry", "src/check/suite"];
    await run(copy, tool("vitest"), "run", "--project", "unit", ...ofRegistry, "-t", nameOf(""));
    for (const family of families) {
      if (family !== "membership") {
        // Failure detectors never terminate, so the checker reports `unknown` for them.
        const check = await run(
          copy,
          process.execPath,
          "dist/cli/coterie.js",
          "check",
          nameOf(family),
          "--nodes",
          "2",
          "--json",
        );
        expect([family, (JSON.parse(check) as { verdict: string }).verdict]).toEqual([family, "holds"]);
      }
      const scenario = readdirSync(join(copy, "scenarios")).find((file) => file.startsWith(nameOf(family)));
      await run(copy, process.execPath, "dist/cli/coterie.js", "sim", `scenarios/${scenario}`);
    }
    await expect(run(copy, process.execPath, CLI, "new", "mutex", nameOf("mutex"))).rejects.toThrow(
      "not to exist yet: choose another name",
    );
  });

  test("in a project outside the checkout: all families compile against the package, and pass their tests", {
    tags: ["long"],
  }, async () => {
    mkdirSync(own, { recursive: true });
    for (const family of families)
      await run(own, process.execPath, CLI, "new", family, nameOf(family), "--out", "algorithms");
    const files = readdirSync(join(own, "algorithms")).filter((file) => file.endsWith(".ts"));
    expect(files).toHaveLength(2 * families.length);
    for (const file of files) expect(readFileSync(join(own, "algorithms", file), "utf8")).not.toContain("../");
    const options = ["--noEmit", "--strict", "--module", "nodenext", "--skipLibCheck", "--allowImportingTsExtensions"];
    await run(own, tool("tsc"), ...options, "--ignoreConfig", ...files.map((file) => join("algorithms", file)));
    writeFileSync(join(own, "vitest.config.mjs"), "export default {};\n");
    await run(own, tool("vitest"), "run", "--root", own);
  });

  test("--out writes the algorithm, its test and its log, and does not overwrite them", async () => {
    const out = join(elsewhere, "here");
    const { code, stdout } = await coterie("new", "election", "my-election", "--out", out);
    expect(code).toBe(0);
    expect(stdout).toContain("It runs already. Next steps:");
    expect(readdirSync(out, { recursive: true, encoding: "utf8" }).sort()).toEqual([
      "my-election.test.ts",
      "my-election.ts",
      "stories",
      "stories/my-election-undisturbed.txt",
    ]);
    const text = readFileSync(join(out, "my-election.ts"), "utf8");
    expect(text).toContain("export function myElection(): Protocol<MyElection> {");
    expect(text).toContain('from "coterie/core";');
    expect(text.toLowerCase()).not.toContain("skeleton");
    const again = await coterie("new", "election", "my-election", "--out", out);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain("expected my-election.test.ts not to exist yet");
  });

  test.each([
    [
      ["mutexes", "x"],
      'expected the family to be one of election, mutex, multicast, consensus, membership, got "mutexes"',
    ],
    [["mutex", "Suzuki"], "expected the name to be lower-case words with hyphens"],
    [
      ["election", "bully"],
      "expected a new name, got bully, which is already the name of an algorithm: choose another",
    ],
    [["mutex"], "missing required argument 'name'"],
    [["mutex", "class"], "expected the name to be a name that is not reserved in JavaScript"],
    [
      ["mutex", "protocol", "--out", "build/x"],
      "expected the name to be different, because the code already uses protocol",
    ],
    [
      ["mutex", "fresh", "--out", "build/x", "--summary", "a */ b"],
      'expected --summary to be one line without */, got "a */ b"',
    ],
    [["mutex", "fresh", "--out", "package.json"], "expected the folder to be writable"],
  ])("%j is rejected, and nothing is written", async (words, sentence) => {
    const { code, stderr } = await coterie("new", ...words);
    expect(code).toBe(2);
    expect(stderr.replaceAll(/\s+/g, " ")).toContain(sentence);
    expect(existsSync(join(ROOT, "src/protocols/mutex/bully.ts"))).toBe(false);
  });

  test("outside of a checkout it suggests where else it can write", async () => {
    const { code, stderr } = (await promisify(execFile)(process.execPath, [CLI, "new", "mutex", "x"], {
      cwd: elsewhere,
    }).catch((error: unknown) => error)) as { code: number; stderr: string };
    expect(code).toBe(2);
    expect(stderr.replaceAll(/\s+/g, " ")).toContain("to write into your own project, add --out DIR");
  });
});
