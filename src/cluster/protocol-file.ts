/** Loads protocols from users' own files, such as `./mine.ts`, and adds them to the registry. */
import { existsSync } from "node:fs";
import { register } from "node:module";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { UsageError, unexpected } from "../core/errors.ts";
import { isRegistered, type RegistryEntry, registerProtocol } from "../protocols/index.ts";
import { optionalPackage } from "../runtime/optional-package.ts";

/** Whether a protocol's name is the path of a file. */
export const isProtocolFile = (name: string): boolean => /\.[cm]?[jt]s$/.test(name);

/**
 * Returns the name of a protocol in the registry. A file's name is its path relative to the working directory.
 * @param folder the folder that the path in `name` is relative to
 */
export function registeredName(name: string, folder = "."): string {
  if (!isProtocolFile(name)) return name;
  const path = relative(process.cwd(), resolve(folder, name)).split(sep).join("/");
  return isAbsolute(path) || path.startsWith("../") ? path : `./${path}`;
}

const loaded = new Set<string>();

/** Returns the names of all files that have been loaded, so that other threads can load them too. */
export const loadedProtocols = (): readonly string[] => [...loaded];

/**
 * Loads the file if `name` is a file, unless it has been loaded before. Any other name is returned unchanged.
 *
 * @returns the protocol's name in the registry
 * @throws UsageError if the file cannot be loaded, or if its default export is not a protocol
 */
export async function loadProtocol(given: string, folder = "."): Promise<string> {
  const name = registeredName(given, folder);
  if (!isProtocolFile(name) || isRegistered(name)) return name;
  const file = resolve(name);
  if (!existsSync(file)) throw refusal(unexpected("the protocol", "an existing file", name));
  await prepare(file);
  let exported: unknown;
  try {
    ({ default: exported } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { default?: unknown });
  } catch (error) {
    throw refusal(`${name} could not be loaded: ${String(error)}`, error);
  }
  registerProtocol(name, entryIn(exported, name));
  loaded.add(name);
  return name;
}

const refusal = (text: string, cause?: unknown): UsageError => new UsageError("bad-protocol-file", text, { cause });

/** Whether this version of Node runs TypeScript files. */
const stripsTypes = "typescript" in process.features && Boolean(process.features.typescript);
/** Whether this is the built package. Vitest and tsx, which run the sources, load TypeScript files themselves. */
const isBuilt = import.meta.url.endsWith(".js");
let isPrepared = { hooks: false, typescript: !isBuilt || stripsTypes };

/** Prepares Node to import protocol files. */
async function prepare(file: string): Promise<void> {
  if (file.endsWith("ts") && !isPrepared.typescript) {
    const use = `runs TypeScript files on Node ${process.versions.node} (Node 22.18 and later need no package)`;
    const { register: registerTsx } = await optionalPackage(["tsx"], use, () => import("tsx/esm/api"));
    registerTsx();
    isPrepared = { hooks: false, typescript: true }; // Hooks that are registered later run first.
  }
  if (isBuilt && !isPrepared.hooks) {
    register("./protocol-file-hooks.js", import.meta.url, { data: import.meta.url });
    isPrepared = { ...isPrepared, hooks: true };
  }
}

function entryIn(exported: unknown, name: string): RegistryEntry {
  const { model, family } = (exported ?? {}) as Partial<RegistryEntry>;
  if (typeof model !== "function" || family === undefined) {
    const expected = "the result of defineProtocol() from coterie/protocols";
    throw refusal(unexpected(`the default export of ${name}`, expected, exported));
  }
  const lacking = ["name", "init", "shapes", "source", "assumes", "properties", "costs", "view"].filter(
    (field) => !Object.hasOwn(model(), field),
  );
  if (lacking.length > 0) throw refusal(`${name}: expected the protocol to have ${lacking.join(", ")}`);
  return exported as RegistryEntry;
}
