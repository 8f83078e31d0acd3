/**
 * Serves a protocol with a seeded bug. `…/paxos.ts?bug=<name>` is that file with the bug's text `find` replaced. The
 * query also applies to protocol files that it imports directly or indirectly, because any of them may contain the bug.
 * The text must occur exactly once, so that a change of the protocol cannot silently remove a bug.
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
      if (bug === undefined) throw new Error(`unknown seeded bug "${name}"`);
      return file.endsWith(bug.file) ? { code: patched(code, bug), map: null } : null;
    },
  };
}

/** Splits an id into the file and the requested bug. */
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
      `expected to find the text that "${name}" replaces exactly once in ${file}, found it ${parts.length - 1} times: ${find}`,
    );
  return parts.join(replace);
}
