/** Finds the global names that a file uses, which an import rule cannot see. */
import { type ESTree, Visitor } from "vite";
import { type HouseFile, lineAt, parsed } from "./house.ts";

/** Returns the names that a parameter or a declaration binds. */
function bound(pattern: ESTree.Node): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((part) => bound(part.type === "Property" ? part.value : part.argument));
    case "ArrayPattern":
      return pattern.elements.flatMap((part) => (part === null ? [] : bound(part)));
    case "AssignmentPattern":
      return bound(pattern.left);
    case "RestElement":
      return bound(pattern.argument);
    default:
      return [];
  }
}

/** Nodes where a name is only a label, as in `ctx.setTimer` or `{ process: 3 }`. */
type Labelled = { readonly computed: boolean; readonly key: { readonly start: number } };

/**
 * Finds uses of a global name that the file does not declare itself, and of `Math.random`. `Math` as a value counts
 * too, because it could be destructured.
 */
export function reaches(file: HouseFile, forbidden: ReadonlySet<string>): string[] {
  const found: string[] = [];
  const labels = new Set<number>();
  /**
   * Names that the file declares, such as the textbook's `process`. The compiler, which knows scopes, rejects the
   * global one.
   */
  const own = new Set<string>();
  const bind = (...patterns: ESTree.Node[]): void => {
    for (const name of patterns.flatMap(bound)) own.add(name);
  };
  const at = (offset: number): string => `${file.path}:${lineAt(file.text, offset)}`;
  const label = ({ computed, key }: Labelled): void => {
    if (!computed) labels.add(key.start);
  };
  const { program } = parsed(file);
  new Visitor({
    VariableDeclarator: ({ id }) => bind(id),
    FunctionDeclaration: ({ params }) => bind(...params),
    FunctionExpression: ({ params }) => bind(...params),
    ArrowFunctionExpression: ({ params }) => bind(...params),
    TSFunctionType: ({ params }) => bind(...params),
    TSMethodSignature: ({ params }) => bind(...params),
  }).visit(program);
  new Visitor({
    MemberExpression({ object, property, computed }) {
      if (computed) return;
      labels.add(property.start);
      const isMath = object.type === "Identifier" && object.name === "Math";
      if (isMath && property.type === "Identifier" && property.name === "random")
        found.push(`${at(object.start)} uses Math.random`);
      else if (isMath) labels.add(object.start);
    },
    Property: ({ shorthand, ...node }) => void (shorthand || label(node)),
    MethodDefinition: label,
    PropertyDefinition: label,
    TSPropertySignature: label,
    TSMethodSignature: label,
    Identifier({ name, start }) {
      if (labels.has(start) || own.has(name)) return;
      if (forbidden.has(name) || name === "Math") found.push(`${at(start)} uses ${name}`);
    },
  }).visit(program);
  return found;
}
