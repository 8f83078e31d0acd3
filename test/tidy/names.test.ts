/** Rejects names that do not describe their contents: the names below mean nothing, or fit everything. */
import { describe, expect, it } from "vitest";
import { house } from "./house.ts";

const EMPTY_WORDS =
  /(?:^|[-_.])(?:utils?|helpers?|common|misc|shared|types?|managers?|data|infos?|old|new|final|copy|v?\d+)$/i;
const KEBAB = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** Folders where the project chooses all names. Elsewhere tools and conventions determine names, such as LICENSE. */
const OUR_FOLDERS = /^(?:src|studio|bench|test|docs)\//;

/** Returns the bad names in a path: folders, and the file without its extensions. */
function misnamed(path: string): string[] {
  if (!OUR_FOLDERS.test(path)) return [];
  return path.split("/").flatMap((segment, index, all) => {
    const name = index === all.length - 1 ? segment.replace(/\..*$/, "") : segment;
    if (EMPTY_WORDS.test(name)) return [`${path}: "${name}" does not describe its contents`];
    return KEBAB.test(name) || /^(?:README|tsconfig)\b/.test(segment) ? [] : [`${path}: "${name}" is not kebab-case`];
  });
}

describe("names of files and folders", () => {
  it("describe their contents", () => {
    expect(house.flatMap(({ path }) => misnamed(path))).toEqual([]);
  });

  it.each([
    "src/utils/clock.ts",
    "src/core/helpers.ts",
    "src/core/string-utils.ts",
    "src/runtime/common/frames.ts",
    "src/runtime/lock-manager.ts",
    "src/core/types.ts",
    "studio/src/data/feed.ts",
    "src/cluster/node-info.ts",
    "src/protocols/election/bully-v2.ts",
    "src/protocols/election/bully-2.ts",
    "src/core/nodeSet.ts",
    "studio/src/NodeCard.svelte",
  ])("%s is rejected", (path) => {
    expect(misnamed(path)).toHaveLength(1);
  });
});
