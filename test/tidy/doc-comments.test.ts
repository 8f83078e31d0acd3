/**
 * Ensures that every symbol of the package's public entry points has a doc comment, and so does every member of a
 * public interface, class or object type. The API reference is generated from these comments.
 */
import type { ESTree } from "vite";
import { describe, expect, it } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { type HouseFile, house, lineAt, parsed, targetOf } from "./house.ts";

/** The fields of a type bag. Every algorithm has them, and `Vocabulary` describes them. */
const BAG = new Set(["state", "message", "timer", "command", "event", "record", "reply"]);

const entryPoints = Object.values(packageJson.exports).flatMap((target) =>
  typeof target === "string" ? [] : [target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts")],
);

type Files = ReadonlyMap<string, HouseFile>;

/** A part of a file that should have a comment. */
interface Commented {
  readonly name: string;
  readonly start: number;
}

interface Declaration {
  readonly node: ESTree.Node;
  /** Where its comment ends: at `export`, if it is exported. */
  readonly start: number;
}

/** The declarations and exports of a file. */
interface Surface {
  readonly declared: Map<string, Declaration[]>;
  /** For each exported name: the file that defines it, or null for this file, and its name there. */
  readonly exported: Map<string, { readonly from: string | null; readonly name: string }>;
  /** Files that are reexported with `export *`. */
  readonly passedOn: string[];
}

const surfaces = new WeakMap<HouseFile, Surface>();

function surfaceOf(file: HouseFile): Surface {
  const known = surfaces.get(file) ?? readSurface(file);
  surfaces.set(file, known);
  return known;
}

function readSurface(file: HouseFile): Surface {
  const surface: Surface = { declared: new Map(), exported: new Map(), passedOn: [] };
  const { declared, exported, passedOn } = surface;
  const imported = new Map<string, { from: string; name: string }>();
  for (const statement of parsed(file).program.body) {
    if (statement.type === "ExportAllDeclaration") passedOn.push(statement.source.value);
    else if (statement.type === "ImportDeclaration")
      for (const { type, local, ...each } of statement.specifiers)
        imported.set(local.name, {
          from: statement.source.value,
          name: "imported" in each ? textOf(each.imported) : type,
        });
    else if (statement.type === "ExportNamedDeclaration" && statement.declaration === null)
      for (const { exported: name, local } of statement.specifiers)
        exported.set(textOf(name), { from: statement.source?.value ?? null, name: textOf(local) });
    else {
      const isExported = statement.type === "ExportNamedDeclaration" && statement.declaration !== null;
      const node = isExported ? (statement.declaration as ESTree.Node) : statement;
      for (const name of namesOf(node)) {
        declared.set(name, [...(declared.get(name) ?? []), { node, start: statement.start }]);
        if (isExported) exported.set(name, { from: null, name });
      }
    }
  }
  for (const [name, { from, name: local }] of exported) {
    const origin = from === null && !declared.has(local) ? imported.get(local) : undefined;
    if (origin !== undefined) exported.set(name, origin);
  }
  return surface;
}

const textOf = (name: ESTree.ModuleExportName): string => (name.type === "Literal" ? name.value : name.name);

function namesOf(node: ESTree.Node): string[] {
  if (node.type === "VariableDeclaration")
    return node.declarations.flatMap(({ id }) => (id.type === "Identifier" ? [id.name] : []));
  return "id" in node && node.id?.type === "Identifier" ? [node.id.name] : [];
}

/** Returns the declarations that a file exports under any name, with the files that contain them. */
function exportsOf(path: string, files: Files, seen = new Set<string>()): [file: HouseFile, name: string][] {
  const file = files.get(path);
  if (file === undefined || seen.has(path)) return [];
  seen.add(path);
  const { exported, passedOn } = surfaceOf(file);
  return [
    ...[...exported.keys()].flatMap((name) => originOf(file, name, files)),
    ...passedOn.flatMap((from) => exportsOf(targetOf(path, from) ?? "", files, seen)),
  ];
}

function originOf(file: HouseFile, name: string, files: Files): [file: HouseFile, name: string][] {
  const { exported, passedOn } = surfaceOf(file);
  const named = exported.get(name);
  if (named !== undefined && named.from === null) return [[file, named.name]];
  const origins = named === undefined ? passedOn.map((from) => ({ from, name })) : [named];
  return origins.flatMap(({ from, name: original }) => {
    const other = files.get(targetOf(file.path, from ?? "") ?? "");
    return other === undefined ? [] : originOf(other, original, files);
  });
}

/**
 * Returns a function that checks whether a position directly follows a doc comment, ignoring other comments in between.
 */
function documentedIn(file: HouseFile): (start: number) => boolean {
  const { comments } = parsed(file);
  const ends = new Map(comments.map((comment) => [comment.end, comment]));
  return (start) => {
    let end = file.text.slice(0, start).trimEnd().length;
    for (let comment = ends.get(end); comment !== undefined; comment = ends.get(end)) {
      if (comment.type === "Block" && comment.value.startsWith("*")) return true;
      end = file.text.slice(0, comment.start).trimEnd().length;
    }
    return false;
  };
}

/**
 * Returns the public members of an interface, a class or an object type. An object type on one line is documented as a
 * whole.
 */
function membersOf(node: ESTree.Node, text: string): Commented[] {
  switch (node.type) {
    case "TSInterfaceDeclaration":
      return node.body.body.flatMap(memberOf);
    case "ClassDeclaration":
      return node.body.body.flatMap(memberOf);
    case "TSTypeAliasDeclaration":
      return membersOf(node.typeAnnotation, text).filter(({ name }) => !BAG.has(name));
    case "TSIntersectionType":
      return node.types.flatMap((each) => membersOf(each, text));
    case "TSParenthesizedType":
      return membersOf(node.typeAnnotation, text);
    case "TSTypeLiteral":
      return text.slice(node.start, node.end).includes("\n") ? node.members.flatMap(memberOf) : [];
    default:
      return [];
  }
}

function memberOf(member: ESTree.TSSignature | ESTree.ClassElement): Commented[] {
  if (!("key" in member) || member.computed || member.key.type !== "Identifier") return [];
  if ("accessibility" in member && member.accessibility === "private") return [];
  return member.key.name === "constructor" ? [] : [{ name: member.key.name, start: member.start }];
}

/** Returns the missing comments. Several declarations of one name, such as overloads, need only one. */
function lacking(file: HouseFile, owner: string, all: readonly Commented[]): string[] {
  const isDocumented = documentedIn(file);
  const done = new Set(all.flatMap(({ name, start }) => (isDocumented(start) ? [name] : [])));
  return all.flatMap(({ name, start }) => {
    if (done.has(name)) return [];
    done.add(name);
    return [`${file.path}:${lineAt(file.text, start)} ${owner}${name}`];
  });
}

/** Returns public symbols and members without a doc comment, by file and line. */
function undocumented(entries: readonly string[], all: readonly HouseFile[]): string[] {
  const files = new Map(all.map((file) => [file.path, file]));
  const found = entries
    .flatMap((path) => exportsOf(path, files))
    .flatMap(([file, name]) => {
      const declarations = surfaceOf(file).declared.get(name) ?? [];
      return [
        ...lacking(
          file,
          "",
          declarations.map(({ start }) => ({ name, start })),
        ),
        ...declarations.flatMap(({ node }) => lacking(file, `${name}.`, membersOf(node, file.text))),
      ];
    });
  return [...new Set(found)].sort();
}

const source = house.filter(({ path }) => /^src\/.*\.ts$/.test(path));

describe("doc comments", () => {
  it("every public symbol and member has one", () => {
    const files = new Map(source.map((file) => [file.path, file]));
    expect(entryPoints.length).toBeGreaterThan(10);
    for (const path of entryPoints) expect(exportsOf(path, files), path).not.toEqual([]);
    expect(undocumented(entryPoints, source)).toEqual([]);
  });

  const reported = (text: string, ...others: HouseFile[]): string[] =>
    undocumented(["src/a.ts"], [{ path: "src/a.ts", text }, ...others]).map((line) => line.replace(/^src\//, ""));

  it.each([
    ["a function", "export function a(): void {}", ["a.ts:1 a"]],
    ["a constant", "// Not a doc comment.\nexport const a = 1;", ["a.ts:2 a"]],
    ["a type", "type A = 1;\nexport type { A };", ["a.ts:1 A"]],
    ["a field", "/** A. */\nexport interface A {\n  b: 1;\n}", ["a.ts:3 A.b"]],
    ["a method", "/** A. */\nexport class A {\n  b(): void {}\n}", ["a.ts:3 A.b"]],
    ["a field of an object type", "/** A. */\nexport type A = B & {\n  b: 1;\n};", ["a.ts:3 A.b"]],
    ["overloads", "export function a(b: 1): void;\nexport function a(b: 2): void;", ["a.ts:1 a"]],
  ])("%s without a comment is reported", (_what, text, lines) => {
    expect(reported(text)).toEqual(lines);
  });

  it.each([
    ["a comment", "/** Does it. */\nexport function a(): void {}"],
    ["a line comment in between", "/** Does it. */\n// biome-ignore lint: why\nexport const a = 1;"],
    [
      "a comment at one of the overloads",
      "/** Does it. */\nexport function a(b: 1): void;\nexport function a(b: 2): void;",
    ],
    ["a private member", "/** A. */\nexport class A {\n  #b = 1;\n  private c = 1;\n  constructor() {}\n}"],
    ["a symbol that is not exported", "const a = 1;"],
    ["a field of a type bag", "/** A. */\nexport type A = {\n  state: { b: 1 };\n};"],
    ["an object type on one line", "/** A. */\nexport type A = { b: 1 };"],
  ])("%s is accepted", (_what, text) => {
    expect(reported(text)).toEqual([]);
  });

  it("follows exports to other files", () => {
    const other = { path: "src/b.ts", text: "export const b = 1;\nexport const c = 1;" };
    expect(reported('export * from "./b.ts";', other)).toEqual(["b.ts:1 b", "b.ts:2 c"]);
    expect(reported('export { b as a } from "./b.ts";', other)).toEqual(["b.ts:1 b"]);
    expect(reported('import { c } from "./b.ts";\nexport { c };', other)).toEqual(["b.ts:2 c"]);
  });
});
