/** Wraps and formats text for a terminal. */

const WIDTH = 80;

/**
 * Wraps text at spaces. The first line begins in column `indent`, and all others are indented by that many spaces.
 * @param lengthOf returns how many columns a text occupies
 */
export function wrapped(
  text: string,
  indent: number,
  width = WIDTH,
  lengthOf = (of: string): number => of.length,
): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent + lengthOf(line) + 1 + lengthOf(word) > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${" ".repeat(indent)}`);
}

/**
 * Wraps long lines. A sentence that continues on the next line is joined first. The new lines are aligned with the text
 * after a bullet or after the first column of a row, or are indented like the line that was joined.
 */
export function fitted(text: string, width = WIDTH): string {
  const lines: { line: string; indent: number }[] = [];
  for (const line of text.split("\n")) {
    const before = lines.at(-1);
    if (before !== undefined && before.line.length > width && goesOn(before.line, line))
      Object.assign(before, { line: `${before.line} ${line.trimStart()}`, indent: indentOf(line).length });
    else lines.push({ line, indent: hangingIndent(line, width) });
  }
  return lines
    .map(({ line, indent }) => {
      if (line.length <= width) return line;
      const own = indentOf(line).length;
      const [first = "", ...rest] = wrapped(line.slice(own), own, width).split("\n");
      return rest.length === 0
        ? `${" ".repeat(own)}${first}`
        : `${" ".repeat(own)}${first}\n${" ".repeat(indent)}${wrapped(rest.map((each) => each.trim()).join(" "), indent, width)}`;
    })
    .join("\n");
}

/**
 * Whether a sentence continues on the next line. It does not if the line ends a sentence or value, or if the next line
 * is a list row or a command.
 */
function goesOn(line: string, next: string): boolean {
  if (next === "" || /[.}]$/.test(line) || [line, next].some((each) => /^ *\$ /.test(each))) return false;
  if (/^ *\{/.test(next) || ROW.test(next)) return false;
  const isInside = indentOf(next).length > indentOf(line).length;
  return isInside ? !line.endsWith(":") : !ROW.test(line);
}

/** A row in a list: a term, at least two spaces, and a description of the term. */
const ROW = /^ *\S+(?: \S+)* {2,}/;

const indentOf = (line: string): string => /^ */.exec(line)?.[0] ?? "";

function hangingIndent(line: string, width: number): number {
  const head = (ROW.exec(line) ?? /^ *[-$] /.exec(line))?.[0] ?? indentOf(line);
  return head.length > width / 2 ? indentOf(line).length : head.length;
}

/** The maximum length of a printed error message, in characters. */
const MOST_CHARACTERS = 1_000;

/**
 * Formats an error message as a single line. Control characters from quoted files are escaped, so they do not affect
 * the terminal.
 */
export function errorLine(message: string): string {
  const line = message
    .replace(/^error: /, "")
    .replaceAll(/\s*\n\s*/g, " ")
    .replaceAll(
      /\p{Cc}|\p{Cf}/gu,
      (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
    );
  return line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS)}…` : line;
}

/** Formats a number with thousands separators and at most one decimal place, such as `12,345.7`. */
export function figure(value: number): string {
  const [whole = "", decimals] = String(Math.round(value * 10) / 10).split(".");
  const grouped = whole.replaceAll(/\B(?=(\d{3})+$)/g, ",");
  return decimals === undefined ? grouped : `${grouped}.${decimals}`;
}

/** Formats a count with its noun, such as `1 move` or `2 moves`. */
export const counted = (count: number, { one, more }: { readonly one: string; readonly more: string }): string =>
  `${figure(count)} ${count === 1 ? one : more}`;

/** Formats node ids, with ranges for consecutive ids, such as `0–3, 5 and 7`. */
export function spans(nodes: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const node of nodes.toSorted((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last?.[1] === node - 1) last[1] = node;
    else runs.push([node, node]);
  }
  const words = runs.flatMap(([from, to]) => (to - from === 1 ? [from, to] : [from === to ? from : `${from}–${to}`]));
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
