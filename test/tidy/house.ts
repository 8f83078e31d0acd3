/** Provides the files of this repository to the rules in this folder. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { type ParseResult, parseSync, Visitor } from "vite";

export interface HouseFile {
  /** Relative to the root, with `/` between folders. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly line: number;
  readonly specifier: string;
  /** Whether the import is absent from the compiled code. */
  readonly isTypeOnly: boolean;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NOT_OURS = new Set(["node_modules", "dist", "build", "coverage", ".git"]);
const TEXT = /\.(ts|svelte|js|mjs|json|jsonc|css|html|svg|md|txt|ya?ml|sh)$|\/(\.[\w-]+|run|LICENSE)$/;

/** Every hand-written text file, sorted by path. */
export const house: readonly HouseFile[] = walk(ROOT)
  .map((path) => relative(ROOT, path).split(sep).join("/"))
  .filter((path) => TEXT.test(`/${path}`))
  .sort()
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));

export const code = house.filter(({ path }) => /^(src|studio|site|bench|test)\/.*\.(ts|svelte)$/.test(path));

export const isTest = (path: string): boolean => /\.(test|test-d)\.ts$/.test(path);

function walk(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? walk(path) : [path];
  });
}

const trees = new WeakMap<HouseFile, ParseResult>();

/** Parses a file, or the scripts of a component, into a syntax tree. */
export function parsed(file: HouseFile): ParseResult {
  const known = trees.get(file);
  if (known !== undefined) return known;
  const tree = parse(file);
  trees.set(file, tree);
  return tree;
}

function parse({ path, text }: HouseFile): ParseResult {
  const result = parseSync("any.ts", path.endsWith(".svelte") ? scriptsOf(text) : text);
  if (result.errors.length > 0) throw new Error(`${path} cannot be read: ${result.errors[0]?.message}`);
  return result;
}

/** Blanks all but the scripts of a component, so that lines keep their numbers. */
function scriptsOf(component: string): string {
  const blank = (text: string): string => text.replaceAll(/[^\n]/g, " ");
  let scripts = "";
  let end = 0;
  for (const match of component.matchAll(/(<script\b[^>]*>)([\s\S]*?)<\/script>/g)) {
    const begin = match.index + (match[1] ?? "").length;
    scripts += blank(component.slice(end, begin)) + match[2];
    end = begin + (match[2] ?? "").length;
  }
  return scripts + blank(component.slice(end));
}

/** Returns the line number, starting with 1, of the character at `offset`. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let end = text.indexOf("\n"); end !== -1 && end < offset; end = text.indexOf("\n", end + 1)) line++;
  return line;
}

/** Returns the imports and reexports of a file, including `import("…")` in values and in types. */
export function importsOf(file: HouseFile): Import[] {
  const found: Import[] = [];
  const note = (specifier: string, offset: number, isTypeOnly: boolean): void =>
    void found.push({ specifier, isTypeOnly, line: lineAt(file.text, offset) });
  new Visitor({
    ImportDeclaration: ({ source, start, importKind }) => note(source.value, start, importKind === "type"),
    ExportAllDeclaration: ({ source, start, exportKind }) => note(source.value, start, exportKind === "type"),
    ExportNamedDeclaration({ source, start, exportKind }) {
      if (source !== null) note(source.value, start, exportKind === "type");
    },
    ImportExpression({ source, start }) {
      // A computed specifier does not name a file that can be checked, so its node type is recorded.
      note(source.type === "Literal" ? String(source.value) : `(${source.type})`, start, false);
    },
    TSImportType: ({ source, start }) => note(source.value, start, true),
  }).visit(parsed(file).program);
  return found;
}

/** Resolves a relative import to a path from the root. Returns null for a package. */
export function targetOf(path: string, specifier: string): string | null {
  return specifier.startsWith(".")
    ? normalize(join(dirname(path), specifier))
        .split(sep)
        .join("/")
    : null;
}
