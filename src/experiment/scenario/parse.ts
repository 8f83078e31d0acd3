/** Parses scenarios from YAML. Error messages give the line, the column and the field. */
import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from "yaml";
import { UsageError, unexpected } from "../../core/errors.ts";
import { firstProblem, type Path, type Problem } from "./problem.ts";
import { type Scenario, scenarioSchema } from "./schema.ts";
import { soundnessProblem } from "./soundness.ts";

/** A scenario, with the positions of its fields in the file. */
export interface ParsedScenario {
  /** The validated scenario. */
  readonly scenario: Scenario;
  /**
   * Returns the position of a field as `file:line:column`. If the field does not exist, returns the position of the
   * nearest enclosing field that does.
   */
  place(path: Path): string;
}

/**
 * Parses and validates a scenario.
 *
 * @param file the path of the scenario, for error messages
 * @example
 * const text = "{ name: crash, protocol: bully, nodes: 3, steps: [{ crash: 2 }, { call: 0 }] }";
 * const { outcome } = runScenario(parseScenario(text, "crash.yaml").scenario); // Nodes 0 and 1 elect 1.
 * @throws UsageError if it is not YAML or not a valid scenario; the message begins with `file:line:column`
 */
export function parseScenario(text: string, file: string): ParsedScenario {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const placeAt = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const [error] = document.errors;
  if (error !== undefined) {
    const expected = error.code === "MULTIPLE_DOCS" ? "one scenario, got a second document" : `YAML: ${error.message}`;
    throw new UsageError("bad-scenario", `${placeAt(error.pos[0])}: expected ${expected}`);
  }
  const place = (path: Path): string => placeAt(offsetOf(document.contents, path));
  const refuse = ({ path, sentence }: Problem): never => {
    throw new UsageError("bad-scenario", `${place(path)}: ${sentence}`);
  };
  visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document) !== undefined) return;
      const sentence = unexpected("the alias", "one of an earlier anchor, such as *a for &a", `*${alias.source}`);
      throw new UsageError("bad-scenario", `${placeAt(alias.range?.[0] ?? 0)}: ${sentence}`);
    },
  });
  const input = plainOf(document, file);
  const checked = scenarioSchema.safeParse(input);
  if (!checked.success) return refuse(firstProblem(scenarioSchema, checked.error, input));
  const unsound = soundnessProblem(checked.data);
  return unsound === null ? { scenario: checked.data, place } : refuse(unsound);
}

function plainOf(document: Document, file: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    // Nested aliases can expand to an enormous document.
    throw new UsageError("bad-scenario", `${file}: expected YAML of a moderate size: ${(error as Error).message}`);
  }
}

/** Returns the offset of the key or list item at the given path. */
function offsetOf(root: Node | null, path: Path): number {
  let node: unknown = root;
  let offset = root?.range?.[0] ?? 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
      if (pair === undefined) return offset;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      offset = (node as Node | undefined)?.range?.[0] ?? offset;
    } else return offset;
  }
  return offset;
}
