/** `coterie new`: a new algorithm that compiles, runs in simulator and checker and has its tests, to be filled in. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { UsageError, unexpected } from "../core/errors.ts";
import { protocolNames } from "../protocols/index.ts";
import type { Invocation, Output } from "./invocation.ts";
import {
  type FamilyFolder,
  families,
  forOwnProject,
  forRepository,
  requireName,
  type SkeletonFile,
  type Words,
} from "./skeleton.ts";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
const SKELETONS = join(PACKAGE, "skeletons");
/** Those that speak of a new algorithm. */
const PAGES = "assumptions comparison costs lists pictures scenarios table";

export function declare(command: Command, { stdout }: Invocation): void {
  command
    .description(
      "Writes the files of a new algorithm: a small one that runs, with its test, docs page, scenario and registry line. Then replace it, piece by piece, by yours.",
    )
    .argument("<family>", families.join(", "))
    .argument("<name>", "as the literature names it, such as naimi-trehel")
    .option("--title <text>", "as a heading has it, such as Naimi–Trehel")
    .option("--summary <text>", "in one line, what it does: for its header, its page and every list")
    .option("--scenario <name>", "what happens in its worked example, such as two-wait")
    .option("--out <dir>", "in a project of your own: only the algorithm and its test, importing from coterie")
    .addHelpText("after", EXPLANATION)
    .action((family: string, name: string, { out, ...words }: Omit<Words, "name"> & { readonly out?: string }) => {
      requireName(name);
      requireLine(words.summary);
      if (words.scenario !== undefined) requireName(words.scenario);
      if (out === undefined) inRepository(family, { name, ...words }, stdout);
      else inProject(family, { name, ...words }, out, stdout);
    });
}

/** It stands in a comment, too. */
function requireLine(summary = ""): void {
  if (/[\r\n]|\*\//.test(summary))
    throw new UsageError("bad-argument", unexpected("--summary", "one line without */", summary));
}

const EXPLANATION = `
Example:
  $ coterie new mutex naimi-trehel --title Naimi–Trehel --scenario two-wait \\
      --summary "requests climb a tree that turns towards the last who asked"
  $ coterie new mutex my-lock --out src/locks      # in a project of your own

What each family demands of its algorithms: docs/families.

Exit codes: 0 ok, 2 the family, name or place is not one.`;

function inRepository(given: string, words: Words, stdout: Output): void {
  const family = familyOf(given);
  const { name } = words;
  const root = process.cwd();
  if (!isCheckout(root))
    throw new UsageError(
      "bad-argument",
      "expected to run in a checkout of Coterie: to write into a project of your own, add --out DIR",
    );
  if (protocolNames.includes(name))
    throw new UsageError("bad-argument", `expected no algorithm named ${name}: choose another name`);
  const { added, changed } = forRepository(SKELETONS, root, family, words);
  for (const file of [...added, ...changed]) write(root, file);
  format(
    root,
    [...added, ...changed].map(({ path }) => path).filter((path) => path.endsWith(".ts")),
  );
  const code = `src/protocols/${family}/${name}`;
  const costs = changed.some(({ path }) => path.startsWith("bench/"))
    ? `;\n     bench/table/${family}.ts: if its costs are not 2 messages to enter and 3 in all`
    : "";
  stdout.write(
    `${listed("new", added)}${listed("changed", changed)}
It runs already. Next:
  1. npm run build && npx coterie check ${name}
  2. ${code}.ts: write the header, then the algorithm in the paper's words. What it has to offer: docs/families/${family}.md;
     its scenario expects messages by name: change it together with them, or nothing can be built
  3. npx vitest run ${code}.test.ts: the worked example, every property, and its violation without the assumption;
     pin the number of states, and write its log with --update
  4. docs/protocols/${name}.md and the scenario: tell the worked example; add variants to its line in the registry${costs}
  5. npm run pages -- ${PAGES} draws its picture and writes every list,
     its row in docs/algorithms.md from the header. npx vitest run test/tidy names what is missing
`,
  );
}

function inProject(given: string, words: Words, out: string, stdout: Output): void {
  const family = familyOf(given);
  const { name } = words;
  const folder = resolve(out);
  const files = forOwnProject(SKELETONS, folder, family, words);
  for (const file of files) write(folder, file);
  stdout.write(
    `${listed("new", files, `${out}/`)}
It runs already. Next:
  1. npm install --save-dev vitest && npx vitest run ${join(out, `${name}.test.ts`)}
  2. write the header, then the algorithm in the paper's words, and its properties into the test
`,
  );
}

function familyOf(given: string): FamilyFolder {
  const family = families.find((each) => each === given);
  if (family !== undefined) return family;
  throw new UsageError("bad-argument", unexpected("the family", `one of ${families.join(", ")}`, given));
}

function isCheckout(root: string): boolean {
  const file = join(root, "package.json");
  if (!existsSync(file) || !existsSync(join(root, "src/protocols/index.ts"))) return false;
  return (JSON.parse(readFileSync(file, "utf8")) as { name?: unknown }).name === "coterie";
}

function write(root: string, { path, text }: SkeletonFile): void {
  try {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError("bad-argument", `${unexpected("the place", "a folder that can be written", root)} (${code})`);
  }
}

/** Imports are sorted and lines broken as everywhere in the repository. */
function format(root: string, paths: readonly string[]): void {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  if (!existsSync(biome)) return; // `npm run format` does it later.
  execFileSync(process.execPath, [biome, "check", "--write", ...paths], { cwd: root, stdio: "ignore" });
}

const listed = (what: string, files: readonly SkeletonFile[], folder = ""): string =>
  files.map(({ path }) => `${what.padEnd(8)} ${folder}${path}\n`).join("");
