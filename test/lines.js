/**
 * Counts lines by folder, with and without tests. Use `npm run lines`, or `npm run lines -- REF` to compare with a
 * different commit.
 */
import { execFileSync } from "node:child_process";

const CODE = /\.(ts|svelte|js|css|html|py|pml)$/;
const TEST = /(\.test\.ts|\.fixture\.ts)$|^(test)\//;
const FOLDERS = ["src", "studio", "bench", "site", "examples", "skeletons", "test"];

const git = (...args) => execFileSync("git", args, { encoding: "utf8", maxBuffer: 1 << 28 });

/** Returns the lines of code by folder, and the lines of tests, at a commit. */
function linesAt(ref) {
  const tree = git("ls-tree", "-r", ref).trimEnd().split("\n");
  const files = tree.map((line) => /^\S+ blob (\S+)\t(.*)$/.exec(line)).filter((match) => match !== null);
  const counted = files.filter(
    ([, , path]) => CODE.test(path) && FOLDERS.some((folder) => path.startsWith(`${folder}/`)),
  );
  const texts = execFileSync("git", ["cat-file", "--batch"], {
    input: counted.map(([, hash]) => hash).join("\n"),
    maxBuffer: 1 << 28,
  });
  const found = new Map();
  let at = 0;
  for (const [, , path] of counted) {
    const head = texts.indexOf(10, at);
    const size = Number(texts.toString("utf8", at, head).split(" ")[2]);
    const lines = texts.subarray(head + 1, head + 1 + size).filter((byte) => byte === 10).length;
    at = head + 1 + size + 1;
    const [top, room = ""] = path.split("/");
    const folder = top === "src" && path.split("/").length > 2 ? `src/${room}` : top;
    const name = TEST.test(path) ? "tests" : folder;
    found.set(name, (found.get(name) ?? 0) + lines);
  }
  const all = [...found].filter(([name]) => name !== "tests").reduce((sum, [, lines]) => sum + lines, 0);
  return found.set("all without tests", all);
}

const [, , before] = process.argv;
const now = linesAt("HEAD");
const then = before === undefined ? null : linesAt(before);
const names = [...new Set([...(then?.keys() ?? []), ...now.keys()])].sort((a, b) => (a < b ? -1 : 1));
const row = (name, ...cells) =>
  console.log([name.padEnd(20), ...cells.map((cell) => String(cell).padStart(9))].join(""));
row("folder", ...(then === null ? [] : [before.slice(0, 8)]), "HEAD");
for (const name of names) row(name, ...(then === null ? [] : [then.get(name) ?? 0]), now.get(name) ?? 0);
