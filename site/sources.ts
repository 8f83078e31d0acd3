/**
 * Code that pages link to: a file as it is, to which the browser gives its colours; a folder as a list with what each file says
 * of itself.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { escaped } from "./code.ts";
import { LABORATORY, relative, sourceAddress } from "./places.ts";

export interface Source {
  readonly path: string;
  readonly address: string;
  readonly html: string;
}

/** The pages of what is wanted. Of a folder also those of its files, not of the folders in it. */
export function sourcesOf(root: string, wanted: ReadonlyMap<string, ReadonlySet<string>>): Source[] {
  const paths = new Set(wanted.keys());
  for (const path of wanted.keys()) for (const file of filesIn(root, path)) paths.add(`${path}/${file}`);
  return [...paths].sort().map((path) => {
    const isFolder = isFolderAt(root, path);
    const address = sourceAddress(path, isFolder);
    const inner = isFolder ? folder(root, path, address, paths) : file(root, path, address);
    return { path, address, html: `<h1><code>${escaped(path)}</code></h1>\n${inner}` };
  });
}

function folder(root: string, path: string, address: string, shown: ReadonlySet<string>): string {
  const names = readdirSync(join(root, path)).sort();
  const item = (name: string): string => {
    const isFolder = isFolderAt(root, `${path}/${name}`);
    const words = `<code>${escaped(name)}${isFolder ? "/" : ""}</code>`;
    const about = isFolder ? "" : purposeOf(readFileSync(join(root, path, name), "utf8"));
    const target = sourceAddress(`${path}/${name}`, isFolder);
    const link = shown.has(`${path}/${name}`) ? `<a href="${escaped(relative(address, target))}">${words}</a>` : words;
    return `<tr><td>${link}</td><td>${escaped(about)}</td></tr>`;
  };
  return `<div class="table"><table><tbody>${names.map(item).join("\n")}</tbody></table></div>\n`;
}

function file(root: string, path: string, address: string): string {
  const code = readFileSync(join(root, path), "utf8");
  const scenario = /^scenarios\/([\w-]+)\.yaml$/.exec(path)?.[1];
  const place = relative(address, `${LABORATORY}#/run?scenario=${scenario}`);
  const run = scenario === undefined ? "" : `<p><a href="${place}">Run it in the laboratory</a></p>\n`;
  return `${run}<pre data-language="${extname(path).slice(1)}"><code>${escaped(code)}</code></pre>\n`;
}

/** The first sentence of a file's first comment. */
function purposeOf(code: string): string {
  const comment = /^(?:#!.*\n)?(?:\/\*\*([\s\S]*?)\*\/|((?:# .*\n)+))/.exec(code);
  const words = (comment?.[1] ?? comment?.[2] ?? "").replaceAll(/^\s*(?:\*|#) ?/gm, "").trim();
  const sentence = /^.*?\.(?=\s|$)/s.exec(words)?.[0] ?? words;
  return sentence.replaceAll(/\s+/g, " ").replaceAll("`", "");
}

function filesIn(root: string, path: string): string[] {
  if (!isFolderAt(root, path)) return [];
  return readdirSync(join(root, path)).filter((name) => !isFolderAt(root, `${path}/${name}`));
}

const isFolderAt = (root: string, path: string): boolean => statSync(join(root, path)).isDirectory();
