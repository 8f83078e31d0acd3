/** Loads the protocol files that are named in scenarios and campaigns. */
import { dirname } from "node:path";
import { isScalar, parseDocument, type Scalar, visit } from "yaml";
import { isProtocolFile, loadProtocol, registeredName } from "../../cluster/protocol-file.ts";

/**
 * Loads the protocol files named in a scenario or campaign, and returns the text with their names in the registry.
 * Paths in the text are relative to the file. Lines keep their numbers.
 *
 * @throws UsageError if a protocol file cannot be loaded
 */
export async function withProtocolFiles(text: string, file: string): Promise<string> {
  if (!/\.[cm]?[jt]s\b/.test(text)) return text;
  const found: Scalar<string>[] = [];
  const note = (node: unknown): void => {
    if (isScalar(node) && typeof node.value === "string" && isProtocolFile(node.value))
      found.push(node as Scalar<string>);
  };
  visit(parseDocument(text), {
    Pair(_key, { key, value }, path) {
      if (isScalar(key) && key.value === "protocol") note(value);
      const parent = path.at(-2);
      if (isVariants(parent)) note(key);
    },
  });
  const folder = dirname(file);
  let changed = text;
  for (const { value, range } of found.toReversed()) {
    await loadProtocol(value, folder);
    const [from, to] = range as [number, number, number];
    changed = `${changed.slice(0, from)}${JSON.stringify(registeredName(value, folder))}${changed.slice(to)}`;
  }
  return changed;
}

const isVariants = (node: unknown): boolean =>
  typeof node === "object" && node !== null && "key" in node && isScalar(node.key) && node.key.value === "variants";
