/**
 * Serves a protocol with a bug in it: `…/paxos.ts?bug=<name>` is that file with the find of the bug replaced, and so is each
 * file of a protocol that it imports, and those import: the bug may be in any of them. The text must be there exactly once,
 * so that a bug cannot fade away as the protocol changes.
 */
import type { Plugin } from "vite";
import { bugs } from "./bugs.ts";
import { channelBugs, logMulticastBugs, stateTransferBugs } from "./channels.ts";
import type { SeededBug } from "./seeded-bug.ts";
import { serviceBugs } from "./service.ts";

export function seededBugs(): Plugin {
  return {
    name: "seeded-bugs",
    enforce: "pre",
    async resolveId(source, importer) {
      const [file = "", name] = splitOf(importer ?? "");
      if (name === null || !source.startsWith(".")) return null;
      const resolved = await this.resolve(source, file, { skipSelf: true });
      return resolved?.id.includes("/src/protocols/") ? `${resolved.id}?bug=${name}` : resolved;
    },
    transform(code, id) {
      const [file, name] = splitOf(id);
      if (name === null) return null;
      const bug = [...bugs, ...channelBugs, ...logMulticastBugs, ...serviceBugs, ...stateTransferBugs].find(
        (each) => each.name === name,
      );
      if (bug === undefined) throw new Error(`there is no seeded bug "${name}"`);
      return file.endsWith(bug.file) ? { code: patched(code, bug), map: null } : null;
    },
  };
}

/** The file, and the bug that is asked for. */
function splitOf(id: string): [string, string | null] {
  const [file = "", query = ""] = id.split("?");
  return [file, new URLSearchParams(query).get("bug")];
}

export function patched(
  code: string,
  { name, file, find, replace }: Pick<SeededBug, "name" | "file" | "find" | "replace">,
): string {
  const parts = code.split(find);
  if (parts.length !== 2)
    throw new Error(
      `expected the text that "${name}" changes once in ${file}, found it ${parts.length - 1} times: ${find}`,
    );
  return parts.join(replace);
}
