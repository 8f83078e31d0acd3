/** The fields of a node's state that a scenario sets: they must be there, and hold what they could hold. */
import type { NodeId } from "../../core/protocol.ts";
import type { AnyProtocol } from "../../protocols/index.ts";
import { type Path, type Problem, suggestion, wrong } from "./problem.ts";

/** The first field that a node which has never run does not have, or has as something of another kind; or null. */
export function statesProblem(
  states: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  protocol: AnyProtocol,
  ids: readonly NodeId[],
): Problem | null {
  for (const [id, given] of Object.entries(states)) {
    const self = Number(id);
    const peers = ids.filter((peer) => peer !== self).sort((a, b) => a - b);
    const found = fieldProblem(["begin", "states", id], given, protocol.init(self, peers));
    if (found !== null) return found;
  }
  return null;
}

/** What is null or empty at first may become anything. */
function fieldProblem(path: Path, given: unknown, initial: unknown): Problem | null {
  const kind = kindOf(initial);
  if (kind === "null") return null;
  if (kindOf(given) !== kind) return wrong(path, kind, given);
  if (kind !== "an object") return null;
  const known = Object.keys(initial as object);
  if (known.length === 0) return null;
  for (const [field, value] of Object.entries(given as object)) {
    const at = [...path, field];
    if (!known.includes(field)) {
      const { sentence } = wrong(at, `absent: the fields are ${known.join(", ")}`, value);
      return { path: at, sentence: sentence + suggestion(field, known) };
    }
    const found = fieldProblem(at, value, (initial as Readonly<Record<string, unknown>>)[field]);
    if (found !== null) return found;
  }
  return null;
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "a list";
  return { number: "a number", string: "text", boolean: "true or false" }[typeof value as string] ?? "an object";
}
