/**
 * `coterie new`: writes a small algorithm as a starting point, with tests that run in the simulator and the checker.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { UsageError, unexpected } from "../core/errors.ts";
import { protocolNames } from "../protocols/index.ts";
import { packageFile } from "../runtime/package-files.ts";
import { type Manual, withManual } from "./manual.ts";
import type { Invocation, Output } from "./output.ts";

const SKELETONS = packageFile("skeletons");
/** The generators for the pages that list algorithms. */
const PAGES = "assumptions comparison costs lists pictures scenarios table";

export function declare(command: Command, { stdout }: Invocation): void {
  withManual(command, manual)
    .description(
      "Generates the files for a new algorithm: a small algorithm that runs, with its test, docs page, scenario and registry line. You then replace it step by step.",
    )
    .argument("<family>", families.join(", "))
    .argument("<name>", "the algorithm's name in the literature, such as naimi-trehel")
    .option("--title <text>", "title to use in headings, such as Naimi–Trehel")
    .option("--summary <text>", "one-line summary for its header, its page and every list")
    .option("--scenario <name>", "name of the worked example, such as two-wait")
    .option("--out <dir>", "folder in your own project; only the algorithm and its test are written")
    .action((family: string, name: string, { out, ...words }: Omit<Words, "name"> & { readonly out?: string }) => {
      requireName(name);
      requireLine(words.summary);
      if (words.scenario !== undefined) requireName(words.scenario);
      if (out === undefined) inRepository(family, { name, ...words }, stdout);
      else inProject(family, { name, ...words }, out, stdout);
    });
}

/** @throws UsageError unless the summary is a single line that fits into a comment */
function requireLine(summary = ""): void {
  if (/[\r\n]|\*\//.test(summary))
    throw new UsageError("bad-argument", unexpected("--summary", "one line without */", summary));
}

const manual: Manual = {
  examples: [
    `coterie new mutex naimi-trehel --title Naimi–Trehel --scenario two-wait \\
    --summary "requests climb a tree that turns towards the last requester"`,
    "coterie new mutex my-lock --out src/locks",
  ],
  exitCodes: "0 done; 2 invalid family, name or folder",
  details: `Run the first form in a checkout of Coterie, and the second in your own project. [Families](../learn/index.md) lists the requirements
of each family, and [your own protocol](../verify/own-protocol.md) describes the steps.`,
};

function inRepository(given: string, words: Words, stdout: Output): void {
  const family = familyOf(given);
  const { name } = words;
  const root = process.cwd();
  if (!isCheckout(root))
    throw new UsageError(
      "bad-argument",
      "expected to run in a checkout of Coterie: to write into your own project, add --out DIR",
    );
  if (protocolNames.includes(name))
    throw new UsageError(
      "bad-argument",
      `expected a new name, got ${name}, which is already the name of an algorithm: choose another`,
    );
  const { added, changed } = forRepository(SKELETONS, root, family, words);
  for (const file of [...added, ...changed]) write(root, file);
  format(
    root,
    [...added, ...changed].map(({ path }) => path).filter((path) => path.endsWith(".ts")),
  );
  const code = `src/protocols/${family}/${name}`;
  const costs = changed.some(({ path }) => path.startsWith("bench/"))
    ? `.\n     Correct bench/table/${family}.ts if the costs are not 2 messages to enter and 3 in total`
    : "";
  stdout.write(
    `${listed("new", added)}${listed("changed", changed)}
It runs already. Next steps:
  1. npm run build && npx coterie check ${name}
  2. ${code}.ts: write the header, then the algorithm in the paper's terms. Its interface is in docs/learn/families/${family}.md.
     The scenario refers to the messages by name: change both together, or the build fails
  3. npx vitest run ${code}.test.ts: test the worked example, every property, and its violation without the assumption.
     Correct the number of states, and update the log with --update
  4. docs/learn/protocols/${name}.md and the scenario: describe the worked example. Add any variants to the algorithm's line in the registry${costs}
  5. npm run pages -- ${PAGES} draws its picture and updates every list,
     including its row in docs/learn/algorithms.md. npx vitest run test/tidy lists missing parts
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
It runs already. Next steps:
  1. npm install --save-dev vitest && npx vitest run ${join(out, `${name}.test.ts`)}
  2. write the header, then the algorithm in the paper's terms, and test its properties
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
    throw new UsageError("bad-argument", `${unexpected("the folder", "writable", root)} (${code})`);
  }
}

/** Formats the files in the same way as the rest of the repository. */
function format(root: string, paths: readonly string[]): void {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  if (!existsSync(biome)) return; // `npm run format` formats them later.
  execFileSync(process.execPath, [biome, "check", "--write", ...paths], { cwd: root, stdio: "ignore" });
}

const listed = (what: string, files: readonly SkeletonFile[], folder = ""): string =>
  files.map(({ path }) => `${what.padEnd(8)} ${folder}${path}\n`).join("");

/** The families that have a skeleton. */
export const families = ["election", "mutex", "multicast", "consensus", "membership"] as const;
/** A family's name, which is also the name of its skeleton's folder. */
export type FamilyFolder = (typeof families)[number];

/** A file of a new algorithm. */
export interface SkeletonFile {
  /** The path relative to the root of the repository, or to the folder given with `--out`. */
  readonly path: string;
  readonly text: string;
}

/**
 * The name of the algorithm in `skeletons/`, as used in file names and prose, in identifiers, as a type and as a title.
 */
const KEBAB = "skeleton-algorithm";

/** JavaScript's reserved words. */
const RESERVED = new Set(
  `await break case catch class const continue debugger default delete do else enum export extends false finally for function if
  implements import in instanceof interface let new null package private protected public return static super switch this throw
  true try typeof var void while with yield`.split(/\s+/),
);

/** @throws UsageError if the name cannot be used for a file and an identifier */
export function requireName(name: string): void {
  const refuse = (expected: string): never => {
    throw new UsageError("bad-argument", unexpected("the name", expected, name));
  };
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) refuse("lower-case words with hyphens, such as naimi-trehel");
  if (RESERVED.has(name)) refuse("a name that is not reserved in JavaScript, because a function gets the same name");
}

function camelCase(name: string): string {
  return name.replaceAll(/-(.)/g, (_hyphen, letter: string) => letter.toUpperCase());
}

const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** The author's description of a new algorithm. */
export interface Words {
  /** The name in kebab-case. */
  readonly name: string;
  /** The title in headings, such as Suzuki–Kasami. Default: the name with spaces, capitalized. */
  readonly title?: string | undefined;
  /** A summary in one line. */
  readonly summary?: string | undefined;
  /** The name of the worked example in kebab-case, such as two-wait. */
  readonly scenario?: string | undefined;
}

function renamed(text: string, { name, title = capital(name.replaceAll("-", " ")), summary, scenario }: Words): string {
  const placed =
    scenario === undefined
      ? text
      : text
          .replaceAll(/(skeleton-algorithm)-[\w-]+(?=\.(?:yaml|txt)\b)/g, `$1-${scenario}`)
          .replaceAll(/^(name: "Skeleton algorithm): .*"$/gm, `$1: ${scenario.replaceAll("-", " ")}"`);
  return (summary === undefined ? placed : summarised(placed, summary))
    .replaceAll(KEBAB, name)
    .replaceAll("skeletonAlgorithm", camelCase(name))
    .replaceAll("SkeletonAlgorithm", capital(camelCase(name)))
    .replaceAll("skeleton algorithm", name.replaceAll("-", " "))
    .replaceAll("Skeleton algorithm", title);
}

/** Inserts the summary in the header, the page and the registry. */
const summarised = (text: string, summary: string): string =>
  text
    .replaceAll(/"one-line summary[^"\n]*"/g, () => JSON.stringify(summary))
    .replaceAll(/in one sentence, [^.\n]*\./g, () => `${summary}.`)
    .replaceAll(/In one sentence, [^.\n]*\./g, () => `${capital(summary)}.`);

/** The files with lines to be added to existing files. */
const LINES = ["registry.ts", "costs.ts"];
/** The folder with the files for this repository, which replace those for other projects. */
const HERE = "repository/";

/** Returns a family's skeleton files, except those with lines to be added to existing files. */
function skeletonOf(skeletons: string, family: FamilyFolder, words: Words, isHere: boolean): SkeletonFile[] {
  const folder = join(skeletons, family);
  requireUnused(folder, words.name);
  const all = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (path) => /\.(ts|txt|md|yaml)$/.test(path) && !LINES.includes(path),
  );
  return all
    .filter((path) => (path.startsWith(HERE) ? isHere : !isHere || !all.includes(`${HERE}${path}`)))
    .map((path) => ({ path: path.replace(HERE, ""), text: textOf(join(folder, path)) }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ path, text }) => ({ path: renamed(path, words), text: renamed(text, words) }));
}

/** @throws UsageError if the skeleton already uses the name's function or type for something else */
function requireUnused(folder: string, name: string): void {
  const [identifier, type] = [camelCase(name), capital(camelCase(name))];
  const declared = new RegExp(
    `\\b(?:const|let|function)\\s+${identifier}\\b|^import .*\\b${identifier}\\b.* from`,
    "m",
  );
  const used = new RegExp(`\\b${type}\\b`);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  for (const path of files) {
    const code = readFileSync(join(folder, path), "utf8").replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*|"[^"\n]*"|`[^`]*`/g, "");
    if (!declared.test(code) && !used.test(code)) continue;
    const expected = `different, because the code already uses ${declared.test(code) ? identifier : type}`;
    throw new UsageError("bad-argument", unexpected("the name", expected, name));
  }
}

/**
 * Reads a skeleton file. A file in `repository/` is one folder deeper than its copy will be, so its import paths are
 * shortened.
 */
function textOf(path: string): string {
  const text = readFileSync(path, "utf8");
  if (!path.includes(`/${HERE}`)) return text;
  return text
    .replaceAll('"../../../src/', '"../../src/')
    .replaceAll('"../skeleton', '"./skeleton')
    .replaceAll('"../stories/', '"stories/');
}

/**
 * Returns the new and changed files for this repository.
 * @throws UsageError if a file already exists, or if a list is not found
 */
export function forRepository(
  skeletons: string,
  root: string,
  family: FamilyFolder,
  words: Words,
): { readonly added: readonly SkeletonFile[]; readonly changed: readonly SkeletonFile[] } {
  const { name } = words;
  const protocols = `src/protocols/${family}`;
  const folderOf = (path: string): string =>
    path.endsWith(".md") ? "docs/learn/protocols" : path.endsWith(".yaml") ? "scenarios" : protocols;
  const added = skeletonOf(skeletons, family, words, true).map(({ path, text }) => ({
    path: `${folderOf(path)}/${path}`,
    text: path.endsWith(".ts") ? movedInto(text, family) : text,
  }));
  requireFree(root, added);
  const texts = new Map<string, string>();
  const change = (path: string, how: (text: string) => string): void =>
    void texts.set(path, how(texts.get(path) ?? readFileSync(join(root, path), "utf8")));
  const from = `./${family}/${name}.ts`;
  const type = capital(camelCase(name));
  const hasOptions = added.some(({ text }) => new RegExp(`export (?:interface|type) ${type}Options\\b`).test(text));
  const types = [`type ${type}`, ...(hasOptions ? [`type ${type}Options`] : [])];
  change(registryFile(root, family), (text) =>
    withImport(withEntry(text, linesOf(skeletons, family, "registry.ts", words), family, name), camelCase(name), from),
  );
  change(
    "src/protocols/index.ts",
    (text) => `${text}export { ${[...types, camelCase(name)].join(", ")} } from "${from}";\n`,
  );
  if (existsSync(join(skeletons, family, "costs.ts")))
    change(`bench/table/${family}.ts`, (text) => {
      const lines = linesOf(skeletons, family, "costs.ts", words);
      return withImport(aboveMark(text, lines, family), camelCase(name), `../../src/protocols/${family}/${name}.ts`);
    });
  change("docs/learn/algorithms.md", (text) => withRow(text, `<!-- ${family} -->`, rowOf(words)));
  const guaranteed = guaranteeOf(family, name);
  if (guaranteed !== null) change("docs/guide/guarantees.md", (text) => withRow(text, "<!-- textbook -->", guaranteed));
  change("README.md", (text) => withLink(text, family, name));
  change("CHANGELOG.md", (text) => withChange(text, words));
  return { added, changed: [...texts].map(([path, text]) => ({ path, text })) };
}

/** Adapts the paths in a file that is moved from `skeletons/mutex/` to `src/protocols/mutex/`. */
const movedInto = (text: string, family: FamilyFolder): string =>
  text
    .replaceAll(`"../../src/protocols/${family}/`, '"./')
    .replaceAll('"../../src/protocols/', '"../')
    .replaceAll('"../../src/', '"../../');

/**
 * Returns the new files for a folder in a different project.
 * @throws UsageError if a file already exists
 */
export function forOwnProject(skeletons: string, out: string, family: FamilyFolder, words: Words): SkeletonFile[] {
  const files = skeletonOf(skeletons, family, words, false)
    .filter(({ path }) => /\.(ts|txt)$/.test(path))
    .map(({ path, text }) => ({ path, text: path.endsWith(".ts") ? fromPackage(text) : text }));
  requireFree(out, files);
  return files;
}

/**
 * Replaces imports from a folder in `src` with imports from the package's subpath. Traces are part of `coterie/sim`.
 */
function fromPackage(text: string): string {
  return text.replaceAll(/"\.\.\/\.\.\/src\/(\w+)\/[^"]*"/g, (_path, folder: string) =>
    folder === "trace" ? '"coterie/sim"' : `"coterie/${folder}"`,
  );
}

function requireFree(root: string, files: readonly SkeletonFile[]): void {
  const taken = files.find(({ path }) => existsSync(join(root, path)));
  if (taken !== undefined)
    throw new UsageError(
      "bad-argument",
      `expected ${taken.path} not to exist yet: choose another name, or remove it first`,
    );
}

/** Returns the line above which the family's next algorithm is inserted. */
const markOf = (text: string, family: FamilyFolder): string =>
  text.split("\n").find((line) => line.includes("// coterie new:") && line.includes(family)) ?? "";

function registryFile(root: string, family: FamilyFolder): string {
  const folder = "src/protocols";
  const files = readdirSync(join(root, folder)).filter((file) => file.endsWith(".ts"));
  const found = files.find((file) => markOf(readFileSync(join(root, folder, file), "utf8"), family) !== "");
  if (found === undefined)
    throw new UsageError(
      "bad-argument",
      `expected the registry (${folder}) to contain a comment "// coterie new: ${family}"`,
    );
  return `${folder}/${basename(found)}`;
}

/** Returns the lines inside the brackets of the skeleton's `added`. */
function linesOf(skeletons: string, family: FamilyFolder, file: string, words: Words): string {
  const lines = / = [{[]\n(.*)^[}\]];/ms.exec(readFileSync(join(skeletons, family, file), "utf8"))?.[1];
  if (lines === undefined) throw new Error(`expected the skeleton's ${file} to declare \`added\``);
  return renamed(lines, words);
}

/** Adds an import below the first one. The formatter sorts them later. */
const withImport = (text: string, what: string, from: string): string =>
  text.replace(/^import [^;]*;\n/m, (first) => `${first}import { ${what} } from "${from}";\n`);

const aboveMark = (text: string, lines: string, family: FamilyFolder): string => {
  const mark = markOf(text, family);
  return text.replace(mark, () => `${lines}${mark}`);
};

/** Inserts an entry above the first one whose name sorts after it, or above the mark if there is none. */
function withEntry(text: string, lines: string, family: FamilyFolder, name: string): string {
  const entries = [...text.matchAll(/^ {2}"?([a-z][\w-]*)"?: entry\(/gm)];
  const after = entries.find(([, other = ""]) => other > name);
  if (after === undefined) return aboveMark(text, lines, family);
  return `${text.slice(0, after.index)}${lines}${text.slice(after.index)}`;
}

/**
 * Returns the algorithm's row. Later, `npm run pages -- lists` replaces the guarantees, assumptions and costs with the
 * text from the header.
 */
const rowOf = ({ name, summary = "what it does" }: Words): string =>
  `| [\`${name}\`](protocols/${name}.md) | ${summary} | what it guarantees | what it assumes | what it costs |\n`;

/**
 * Returns the algorithm's row in the table about `join()`, which keeps no journal for these algorithms. Null if
 * `join()` does not run algorithms of this family.
 */
function guaranteeOf(family: FamilyFolder, name: string): string | null {
  if (family === "mutex")
    return `| \`${name}\` | yes | may stop for good | waits | grows until a member is started again | no |\n`;
  if (family === "election")
    return `| \`${name}\` | only while no process crashes | may stop for good | waits | null | no |\n`;
  return null;
}

/** Inserts a row above the mark that ends the table. */
function withRow(text: string, mark: string, row: string): string {
  if (!text.includes(`${mark}\n`))
    throw new UsageError("bad-argument", `expected ${mark} below the table for the row ${row.trim()}`);
  return text.replace(`${mark}\n`, () => `${row}${mark}\n`);
}

/** Adds a line to the changelog's list of algorithms. */
function withChange(text: string, { name, summary }: Words): string {
  const heading = "#### Algorithms\n\n";
  const line = `- \`${name}\` is new${summary === undefined ? "" : `: ${summary}`}. \`${camelCase(name)}()\` of \`coterie/protocols\`.\n`;
  return text.replace(heading, () => `${heading}${line}`);
}

/** Adds a link to the family's row in the README, in the format that `npm run pages -- lists` produces. */
function withLink(text: string, family: FamilyFolder, name: string): string {
  return text.replace(
    new RegExp(`^(\\| \\[.*\\]\\(docs/learn/families/${family}\\.md\\) \\| )(.*)( \\|)$`, "m"),
    (_row, head, links, end) => {
      const names = [...String(links).matchAll(/`([^`]+)`/g)].map(([, each]) => each as string);
      const all = [...names, name].sort().map((each) => `[\`${each}\`](docs/learn/protocols/${each}.md)`);
      return `${head}${all.join(", ")}${end}`;
    },
  );
}
