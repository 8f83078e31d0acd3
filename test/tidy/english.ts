/**
 * Counts phrases that a native engineer would not write, in docs, comments, strings and test names. CONTRIBUTING.md
 * lists these phrases with better ones. Code blocks and code spans do not count.
 *
 * `npm run english` prints the rate of each folder per 10,000 words. `npm run english -- docs/guide src/core` prints
 * every place in these files and folders.
 */
import { fileURLToPath } from "node:url";
import { Visitor } from "vite";
import { type HouseFile, house, lineAt, parsed } from "./house.ts";

interface Pattern {
  readonly name: string;
  readonly expression: RegExp;
}

const patterns: readonly Pattern[] = [
  {
    name: "a “what” clause as subject",
    expression: /(?:^|[.!?:] )What (?!is (?:a|an|the)\b|happens\b|you\b|it (?:guarantees|costs|does)\b)/g,
  },
  {
    name: "a “what” clause as object",
    expression: /(?<=[a-z,] )what (?:it|they|a|the|is|was|has|comes|each|others|nobody|all)\b/g,
  },
  {
    name: "“who” without a noun",
    expression: /(?:^|[.,;:] |\band |\bof |\bto )[Ww]ho (?:is|has|wants|waits|crashes|asks|knows|comes)\b/g,
  },
  { name: "“nobody” and the like for a machine", expression: /\b(?:[Nn]obody|[Ss]omebody|[Ee]verybody|[Aa]nybody)\b/g },
  {
    name: "“tell” or “hear of” for a program",
    expression: /\b(?:is|are|was|be|not) told\b|\btells?\b|\bhears? (?:of|from)\b/g,
  },
  { name: "“that of”", expression: /\b(?:that|those) of\b/g },
  {
    name: "“stand” for “be”",
    expression: /\b(?:stands?|stood) (?:in|at|on|under|beside|behind|there|for)\b/g,
  },
  { name: "“go on”", expression: /\b(?:go|goes|went|gone|going) on\b/g },
  { name: "“anew”, “beside”, “for ever”, “but for”", expression: /\banew\b|\bbeside\b|\bfor ever\b|\b[Bb]ut for\b/g },
  {
    name: "“so many” as a variable",
    expression: /(?<!not )\bso (?:many|much|few|long|often)\b(?! (?:that|as)\b)/g,
  },
  {
    name: "“where” for “if”",
    expression: /(?:^|[.;:,] )Where (?:a|the|it|no|they|nodes)\b|[.;:,] where (?:a|the|it|no|they|nodes)\b/g,
  },
  { name: "“is no”", expression: /\b(?:is|are|was) no (?!longer|more\b|way|such)/g },
  { name: "a leading “Of …”", expression: /(?:^|[.;:] )Of (?:a|all|each|the|those|what)\b/g },
  {
    name: "a preposition before “which”",
    expression: /\b(?:of|by|in|to|from|with|under|after) which\b/g,
  },
  {
    name: "an adjective after “that is”",
    expression: /\w+ that (?:is|are) (?:up|down|lost|free|held|late|old|new|full)\b/g,
  },
  { name: "“whatever”, “however long”", expression: /\b(?:whatever|whoever|however (?:late|long|many|much|slow))\b/gi },
  { name: "“in the end”, “be had”", expression: /\b(?:in the end|of itself|came of|comes of|be had)\b/g },
];

export const patternNames: readonly string[] = patterns.map(({ name }) => name);

/** One text: a paragraph, a comment, a string or the name of a test. */
interface Passage {
  readonly line: number;
  readonly text: string;
}

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly pattern: string;
  /** The phrase with the words around it. */
  readonly excerpt: string;
}

export type Kind = "docs" | "comments" | "strings" | "test names";

/** Returns all prose in a file, by kind. */
export function proseOf(file: HouseFile): ReadonlyMap<Kind, readonly Passage[]> {
  const { path, text } = file;
  if (path.endsWith(".md")) return new Map([["docs", paragraphsOf(text)]]);
  if (/^scenarios\/.*\.yaml$/.test(path)) return new Map([["docs", linesOfScenario(text)]]);
  if (/\.(ts|svelte)$/.test(path)) return proseOfCode(file);
  return new Map();
}

export function wordsIn(passages: readonly Passage[]): number {
  return passages.reduce((sum, { text }) => sum + (text.match(/[\p{L}\d][\p{L}\d'’-]*/gu)?.length ?? 0), 0);
}

export function findingsIn(path: string, passages: readonly Passage[]): Finding[] {
  return passages.flatMap(({ line, text }) =>
    patterns.flatMap(({ name, expression }) =>
      [...text.matchAll(expression)].map((match) => ({
        path,
        line: line + newlinesBefore(text, match.index),
        pattern: name,
        excerpt: text
          .slice(Math.max(0, match.index - 40), match.index + match[0].length + 40)
          .replaceAll(/\s+/g, " ")
          .trim(),
      })),
    ),
  );
}

const newlinesBefore = (text: string, offset: number): number => text.slice(0, offset).split("\n").length - 1;

/** Blanks a match but keeps its newlines, so that lines keep their numbers. */
const blank = (match: string): string => match.replaceAll(/[^\n]+/g, " ");

/**
 * Removes code, addresses and markup, which are not prose. `⟨⟩` replaces a code span, which is a noun in its sentence.
 */
function plain(text: string): string {
  return text
    .replaceAll(/^( *)(```|~~~)[\s\S]*?^\1\2 *$/gm, blank)
    .replaceAll(/<!--[\s\S]*?-->/g, blank)
    .replaceAll(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, (match) => `⟨⟩${blank(match).replaceAll(" ", "")}`)
    .replaceAll(/\]\([^)\s]*\)/g, "]")
    .replaceAll(/https?:\/\/\S+/g, " ")
    .replaceAll(/<\/?[a-z][^>]*>/gi, blank)
    .replaceAll(/[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}/g, "")
    .replaceAll(/^ *(?:[-*+]|\d+\.|#+|>) +/gm, blank)
    .replaceAll(/^ *\|(?:[ :-]+\|)+ *$/gm, blank);
}

function paragraphsOf(markdown: string): Passage[] {
  const passages: Passage[] = [];
  let line = 1;
  for (const paragraph of plain(markdown).split(/(?<=\n)/)) {
    for (const cell of paragraph.split("|")) {
      const text = cell.trim();
      if (text !== "") passages.push({ line, text });
    }
    line++;
  }
  return passages;
}

function linesOfScenario(yaml: string): Passage[] {
  return yaml.split("\n").flatMap((each, at) => {
    const text = /(?:^| )#\s?(.*)$/.exec(each)?.[1] ?? /^(?:name|description|about): *"?(.*?)"?$/.exec(each)?.[1];
    return text === undefined || text === "" ? [] : [{ line: at + 1, text: plain(text) }];
  });
}

const TESTS = new Set(["it", "test", "describe"]);

function proseOfCode(file: HouseFile): ReadonlyMap<Kind, readonly Passage[]> {
  const { text } = file;
  const prose = new Map<Kind, Passage[]>([
    ["comments", []],
    ["strings", []],
    ["test names", []],
  ]);
  const tree = parsed(file);
  for (const { value, start } of tree.comments) {
    const lines = value.replaceAll(/^[ \t]*\*[ \t]?/gm, "");
    prose.get("comments")?.push({ line: lineAt(text, start), text: plain(lines).trim() });
  }
  const names = new Set<number>();
  const add = (start: number, value: string): void => {
    const kind = names.has(start) ? "test names" : "strings";
    if (kind === "strings" && !/\p{L}+ \p{L}+ \p{L}+/u.test(value)) return;
    prose.get(kind)?.push({ line: lineAt(text, start), text: plain(value) });
  };
  new Visitor({
    CallExpression({ callee, arguments: [first] }) {
      if (first !== undefined && TESTS.has(rootOf(callee))) names.add(first.start);
    },
    Literal: ({ value, start }) => void (typeof value === "string" && add(start, value)),
    TemplateLiteral: ({ quasis, start }) => add(start, quasis.map(({ value }) => value.cooked ?? "").join("⟨⟩")),
  }).visit(tree.program);
  if (file.path.endsWith(".svelte")) prose.get("strings")?.push(...markupOf(text));
  return prose;
}

/** Returns the root of a call, for example `it` in `it.skipIf(…).each(…)("name", …)`. */
function rootOf(node: object): string {
  if ("name" in node && typeof node.name === "string") return node.name;
  if ("object" in node && node.object instanceof Object) return rootOf(node.object);
  if ("callee" in node && node.callee instanceof Object) return rootOf(node.callee);
  return "";
}

function markupOf(component: string): Passage[] {
  const markup = component
    .replaceAll(/<(script|style)\b[^>]*>[\s\S]*?<\/\1>/g, blank)
    .replaceAll(/\{(?:[^{}]|\{[^{}]*\})*\}/g, (match) => `⟨⟩${blank(match).replaceAll(" ", "")}`)
    .replaceAll(/<!--[\s\S]*?-->/g, blank)
    .replaceAll(/<[^>]+>/g, (tag) => blank(tag));
  return markup.split("\n").flatMap((each, at) => {
    const text = each.trim();
    return /\p{L}+ \p{L}+/u.test(text) ? [{ line: at + 1, text }] : [];
  });
}

/**
 * Returns the group of a file, for example `docs guide` or `comments src/core`. The ratchet has a rate for each group.
 */
export function groupOf(kind: Kind, path: string): string {
  const parts = path.split("/");
  const depth = /^(src|docs|test|studio)$/.test(parts[0] ?? "") ? 2 : 1;
  const folder =
    parts.length <= depth ? parts.slice(0, -1).join("/") || (parts[0] ?? "") : parts.slice(0, depth).join("/");
  return `${kind}: ${folder}`;
}

/** Files that quote the phrases that they reject. */
const quoting = /^(?:test\/tidy\/(?:english|vocabulary|words)[\w.-]*|CONTRIBUTING\.md)$/;

export interface Rate {
  readonly words: number;
  readonly findings: readonly Finding[];
}

export function ratesOf(files: readonly HouseFile[]): ReadonlyMap<string, Rate> {
  const rates = new Map<string, { words: number; findings: Finding[] }>();
  for (const file of files) {
    if (quoting.test(file.path)) continue;
    for (const [kind, passages] of proseOf(file)) {
      if (passages.length === 0) continue;
      const group = groupOf(kind, file.path);
      const rate = rates.get(group) ?? { words: 0, findings: [] };
      rate.words += wordsIn(passages);
      rate.findings.push(...findingsIn(file.path, passages));
      rates.set(group, rate);
    }
  }
  return new Map([...rates].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** @returns phrases per 10,000 words, with one decimal */
export const perTenThousand = ({ words, findings }: Rate): number =>
  words === 0 ? 0 : Math.round((findings.length / words) * 100_000) / 10;

function report(folders: readonly string[]): void {
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const files = house.filter(
    ({ path }) => folders.length === 0 || folders.some((each) => path === each || path.startsWith(`${each}/`)),
  );
  const rates = ratesOf(files);
  if (folders.length > 0)
    for (const { path, line, pattern, excerpt } of [...rates.values()].flatMap(({ findings }) => findings))
      say(`${path}:${line} ${pattern}: … ${excerpt} …`);
  for (const [group, rate] of rates)
    say(`${group.padEnd(32)} ${String(rate.words).padStart(7)} words ${perTenThousand(rate).toFixed(1).padStart(7)}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  report(process.argv.slice(2).map((each) => each.replace(/\/$/, "")));
