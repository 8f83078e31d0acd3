/** Converts zod errors to Coterie's error messages. Each schema's own message names the expected value. */
import type { z } from "zod";
import { unexpected } from "../core/errors.ts";

type Path = readonly PropertyKey[];
type Issue = z.core.$ZodIssue;

/**
 * Returns a sentence about the first problem.
 * @param whole the name for the value as a whole
 */
export function firstProblem(error: z.ZodError, input: unknown, whole: string): string {
  const issue = firstOf(error.issues);
  if (issue === undefined) return error.message;
  if (issue.code !== "unrecognized_keys")
    return unexpected(named(issue.path, whole), issue.message, at(input, issue.path));
  const stray = [...issue.path, issue.keys[0] as string];
  return unexpected(named(stray, whole), "absent", at(input, stray));
}

function firstOf(issues: readonly Issue[]): Issue | undefined {
  // Report an unknown field first, since a misspelled field also looks like a missing one.
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0];
  if (issue?.code !== "invalid_union") return issue;
  // Assume that the variant with the fewest problems was meant, unless several variants tie.
  const [nearest, next] = issue.errors.toSorted((a, b) => a.length - b.length);
  const isMeant = nearest !== undefined && nearest.length > 0 && nearest.length < (next?.length ?? 0);
  const inner = isMeant ? firstOf(nearest) : undefined;
  return inner === undefined ? issue : { ...inner, path: [...issue.path, ...inner.path] };
}

function named(path: Path, whole: string): string {
  return path.length === 0 ? whole : path.map(String).join(".");
}

function at(input: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], input);
}
