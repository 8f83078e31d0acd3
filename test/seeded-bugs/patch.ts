/**
 * Serves a protocol with a bug in it: `…/paxos.ts?bug=<name>` is that file with the find of the bug replaced. The text must
 * be there exactly once, so that a bug cannot fade away as the protocol changes.
 */
import type { Plugin } from "vite";
import { bugs, type SeededBug } from "./bugs.ts";

export function seededBugs(): Plugin {
  return {
    name: "seeded-bugs",
    enforce: "pre",
    transform(code, id) {
      const [file = "", query = ""] = id.split("?");
      const name = new URLSearchParams(query).get("bug");
      if (name === null) return null;
      const bug = bugs.find((each) => each.name === name);
      if (bug === undefined) throw new Error(`there is no seeded bug "${name}"`);
      if (!file.endsWith(bug.file)) throw new Error(`the bug "${name}" is in ${bug.file}, not in ${file}`);
      return { code: patched(code, bug), map: null };
    },
  };
}

export function patched(code: string, { name, file, find, replace }: SeededBug): string {
  const parts = code.split(find);
  if (parts.length !== 2)
    throw new Error(
      `expected the text that "${name}" changes once in ${file}, found it ${parts.length - 1} times: ${find}`,
    );
  return parts.join(replace);
}
