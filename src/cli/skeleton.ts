/** The files of a new algorithm: the family's skeleton under another name, and the lines that lists need. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { UsageError, unexpected } from "../core/errors.ts";

export const families = ["election", "mutex", "multicast", "consensus", "membership"] as const;
export type FamilyFolder = (typeof families)[number];

export interface SkeletonFile {
  /** From the root of the repository, or from the folder that was asked for. */
  readonly path: string;
  readonly text: string;
}

/** What `skeletons/` calls the algorithm: in file names and texts, in identifiers, as a type, as a title. */
const KEBAB = "skeleton-algorithm";

/** Identifiers that JavaScript keeps for itself. */
const RESERVED = new Set(
  `await break case catch class const continue debugger default delete do else enum export extends false finally for function if
  implements import in instanceof interface let new null package private protected public return static super switch this throw
  true try typeof var void while with yield`.split(/\s+/),
);

/** @throws UsageError for a name that is no name for a file and an identifier. */
export function requireName(name: string): void {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) || RESERVED.has(name))
    throw new UsageError(
      "bad-argument",
      unexpected("the name", "lower-case words with hyphens, as the literature names it, such as naimi-trehel", name),
    );
}

function camelCase(name: string): string {
  return name.replaceAll(/-(.)/g, (_hyphen, letter: string) => letter.toUpperCase());
}

const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

function renamed(text: string, name: string): string {
  return text
    .replaceAll(KEBAB, name)
    .replaceAll("skeletonAlgorithm", camelCase(name))
    .replaceAll("SkeletonAlgorithm", capital(camelCase(name)))
    .replaceAll("skeleton algorithm", name.replaceAll("-", " "))
    .replaceAll("Skeleton algorithm", capital(name.replaceAll("-", " ")));
}

/** What the skeletons of a family hold, with the registry's lines left out. */
function skeletonOf(skeletons: string, family: FamilyFolder, name: string): SkeletonFile[] {
  const folder = join(skeletons, family);
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(ts|txt|md|yaml)$/.test(path) && path !== "registry.ts")
    .sort()
    .map((path) => ({ path: renamed(path, name), text: renamed(readFileSync(join(folder, path), "utf8"), name) }));
}

/** New files and changed ones, for this repository. @throws UsageError where a file is in the way, or a list is not found. */
export function forRepository(
  skeletons: string,
  root: string,
  family: FamilyFolder,
  name: string,
): { readonly added: readonly SkeletonFile[]; readonly changed: readonly SkeletonFile[] } {
  const protocols = `src/protocols/${family}`;
  const folderOf = (path: string): string =>
    path.endsWith(".md") ? "docs/protocols" : path.endsWith(".yaml") ? "scenarios" : protocols;
  const added = skeletonOf(skeletons, family, name).map(({ path, text }) => ({
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
  change(registryFile(root, family), (text) => {
    const line = registryLine(readFileSync(join(skeletons, family, "registry.ts"), "utf8"), name);
    const mark = markOf(text, family);
    const listed = text.replace(mark, `${line}${mark}`);
    return listed.replace(/^import [^;]*;\n/m, `$&import { ${camelCase(name)} } from "${from}";\n`);
  });
  change(
    "src/protocols/index.ts",
    (text) => `${text}export { ${[...types, camelCase(name)].join(", ")} } from "${from}";\n`,
  );
  change("docs/algorithms.md", (text) => withRow(text, family, name));
  change("README.md", (text) => withLink(text, family, name));
  return { added, changed: [...texts].map(([path, text]) => ({ path, text })) };
}

/** From `skeletons/mutex/` to `src/protocols/mutex/`. */
const movedInto = (text: string, family: FamilyFolder): string =>
  text
    .replaceAll(`"../../src/protocols/${family}/`, '"./')
    .replaceAll('"../../src/protocols/', '"../')
    .replaceAll('"../../src/', '"../../');

/** New files for a folder of somebody else's project. @throws UsageError where a file is in the way. */
export function forOwnProject(skeletons: string, out: string, family: FamilyFolder, name: string): SkeletonFile[] {
  const files = skeletonOf(skeletons, family, name)
    .filter(({ path }) => /\.(ts|txt)$/.test(path))
    .map(({ path, text }) => ({ path, text: path.endsWith(".ts") ? fromPackage(text) : text }));
  requireFree(out, files);
  return files;
}

/** What lies in a folder of `src` comes from the subpath of the package that is named after it; of traces, from the simulator's. */
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

/** The line of the file above which the next algorithm of the family goes. */
const markOf = (text: string, family: FamilyFolder): string =>
  text.split("\n").find((line) => line.includes("// coterie new:") && line.includes(family)) ?? "";

function registryFile(root: string, family: FamilyFolder): string {
  const folder = "src/protocols";
  const files = readdirSync(join(root, folder)).filter((file) => file.endsWith(".ts"));
  const found = files.find((file) => markOf(readFileSync(join(root, folder, file), "utf8"), family) !== "");
  if (found === undefined)
    throw new UsageError("bad-argument", `expected a comment "// coterie new: ${family}" in the registry (${folder})`);
  return `${folder}/${basename(found)}`;
}

/** What stands in the braces of the skeleton's `added`. */
function registryLine(text: string, name: string): string {
  const line = / = \{\n(.*)^\};/ms.exec(text)?.[1];
  if (line === undefined) throw new Error("expected the skeleton's registry.ts to declare `added`");
  return renamed(line, name);
}

/** Above the mark that ends the table of the family. */
function withRow(text: string, family: FamilyFolder, name: string): string {
  const mark = `<!-- ${family} -->\n`;
  const row = `| [\`${name}\`](protocols/${name}.md) | what it does | what it guarantees | what it assumes | what it costs |\n`;
  if (!text.includes(mark)) throw new UsageError("bad-argument", `expected ${mark.trim()} in docs/algorithms.md`);
  return text.replace(mark, `${row}${mark}`);
}

/** The family's row of the README, as `npm run pages -- lists` writes it. */
function withLink(text: string, family: FamilyFolder, name: string): string {
  return text.replace(
    new RegExp(`^(\\| \\[.*\\]\\(docs/families/${family}\\.md\\) \\| )(.*)( \\|)$`, "m"),
    (_row, head, links, end) => {
      const names = [...String(links).matchAll(/`([^`]+)`/g)].map(([, each]) => each as string);
      const all = [...names, name].sort().map((each) => `[\`${each}\`](docs/protocols/${each}.md)`);
      return `${head}${all.join(", ")}${end}`;
    },
  );
}
