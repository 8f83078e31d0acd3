/** A problem in a scenario or campaign: one sentence of the form "expected …, got …", and the path of the field. */
import type { z } from "zod";
import { unexpected } from "../../core/errors.ts";
import { suggestion } from "../../core/suggestion.ts";

/** The path of a field in a scenario, such as `["steps", 2, "crash"]`. */
export type Path = readonly (string | number)[];

/** A problem with a field. */
export interface Problem {
  readonly path: Path;
  readonly sentence: string;
}

/** Formats a path, such as `steps[2].crash`. An empty path becomes `the scenario`. */
export function fieldName(path: Path): string {
  const name = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("");
  return name === "" ? "the scenario" : name.replace(/^\./, "");
}

/** Creates a problem of the form "expected …, got …". */
export function wrong(path: Path, expected: string, got: unknown): Problem {
  return { path, sentence: unexpected(fieldName(path), expected, got) };
}

/** Returns the first problem that a schema found. */
export function firstProblem(schema: z.ZodType, error: z.ZodError, input: unknown): Problem {
  // Report a misspelled field rather than the field that is missing as a result.
  const issue = error.issues.find(isStray) ?? error.issues[0];
  return issue === undefined ? { path: [], sentence: error.message } : problemOf(schema, issue, [], input);
}

type Issue = z.core.$ZodIssue;

function problemOf(schema: z.ZodType, issue: Issue, above: Path, input: unknown): Problem {
  const path = [...above, ...(issue.path as Path)];
  if (issue.code === "unrecognized_keys") {
    const stray = issue.keys[0] as string;
    const at = [...path, stray];
    const hint = suggestion(stray, fieldsAt(schema, path));
    return { path: at, sentence: `${unexpected(fieldName(at), "absent", valueAt(input, at))}${hint}` };
  }
  if (issue.code === "invalid_key") {
    const key = path.at(-1);
    return {
      path,
      sentence: unexpected(`a key of ${fieldName(path.slice(0, -1))}`, issue.issues[0]?.message ?? issue.message, key),
    };
  }
  if (issue.code === "invalid_union") {
    const meant = issue.errors.find((alternative) => isMeant(alternative, path, input));
    const inner = meant?.find(isStray) ?? meant?.find(isInside);
    if (inner !== undefined) return problemOf(schema, inner, path, input);
  }
  return wrong(path, issue.message, valueAt(input, path));
}

/**
 * Whether the user meant this alternative of a union: the value has the right type and all the right fields, but one
 * field is invalid.
 */
function isMeant(alternative: readonly Issue[], above: Path, input: unknown): boolean {
  const isMissing = ({ path: [field] }: Issue): boolean =>
    field !== undefined && valueAt(input, [...above, field as string | number]) === undefined;
  return alternative.some(isInside) && !alternative.some(isMissing);
}

const isStray = ({ code }: Issue): boolean => code === "unrecognized_keys";
const isInside = (issue: Issue): boolean => issue.path.length > 0 || isStray(issue);

function valueAt(input: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], input);
}

/** Returns the names of the fields that an object at this path may have. */
function fieldsAt(schema: z.ZodType, path: Path): string[] {
  return insides([schema], path).flatMap((inside) =>
    inside.def.type === "object" ? Object.keys((inside as z.ZodObject).shape) : [],
  );
}

/** Returns the schemas that apply at a path. There can be several because of unions. */
function insides(schemas: readonly z.ZodType[], path: Path): z.ZodType[] {
  const [part, ...rest] = path;
  const open = schemas.flatMap(unwrapped);
  if (part === undefined) return open;
  const inner = open.flatMap((schema): z.ZodType[] => {
    const { def } = schema as z.ZodType & { def: { type: string; element?: z.ZodType; valueType?: z.ZodType } };
    if (def.type === "object") return [(schema as z.ZodObject).shape[part] as z.ZodType | undefined].filter(isPresent);
    return [def.element, def.valueType].filter(isPresent);
  });
  return insides(inner, rest);
}

function unwrapped(schema: z.ZodType): z.ZodType[] {
  const { innerType, options } = schema.def as { innerType?: z.ZodType; options?: readonly z.ZodType[] };
  if (innerType !== undefined) return unwrapped(innerType);
  return options === undefined ? [schema] : options.flatMap(unwrapped);
}

const isPresent = <T>(value: T | undefined): value is T => value !== undefined;
