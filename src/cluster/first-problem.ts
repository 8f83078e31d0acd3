/** What zod found wrong, in the one form in which Coterie says so. Schemas carry what they expect as their message. */
import type { z } from "zod";
import { unexpected } from "../core/errors.ts";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** The sentence about the first problem; `whole` names the value itself. */
export function firstProblem(error: z.ZodError, input: unknown, whole: string): string {
  // A misspelt field is refused before the one that is missing because of it.
  const issue = error.issues.find(({ code }) => code === "unrecognized_keys") ?? error.issues[0];
  return issue === undefined ? error.message : sentence(issue, [], input, whole);
}

function sentence(issue: Issue, above: Path, input: unknown, whole: string): string {
  const path = [...above, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    const stray = [...path, issue.keys[0] as string];
    return unexpected(named(stray, whole), "absent", at(input, stray));
  }
  if (issue.code === "invalid_key") {
    const expected = issue.issues[0]?.message ?? issue.message;
    return unexpected(`a key of ${named(path.slice(0, -1), whole)}`, expected, path.at(-1));
  }
  if (issue.code === "invalid_union") {
    const inner = closest(issue.errors);
    if (inner !== undefined) return sentence(inner, path, input, whole);
  }
  return unexpected(named(path, whole), issue.message, at(input, path));
}

/** The problem of the alternative that was meant: the one that is of the right kind, and wrong in itself. */
function closest(alternatives: readonly (readonly Issue[])[]): Issue | undefined {
  const isMeant = ({ path, code }: Issue): boolean =>
    path.length > 0 || code === "custom" || code === "unrecognized_keys";
  return alternatives.flat().find(isMeant);
}

function named(path: Path, whole: string): string {
  return path.length === 0 ? whole : path.map(String).join(".");
}

function at(input: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], input);
}
