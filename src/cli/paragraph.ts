/** Text that fits a terminal. */

const WIDTH = 80;

/** Breaks text at spaces; every line but the first begins with `indent` spaces, where the first begins in that column. */
export function wrapped(text: string, indent: number, width = WIDTH): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent + line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${" ".repeat(indent)}`);
}

/** Of the message of an error at most so many characters are shown. */
const MOST_CHARACTERS = 1_000;

/** An error in one line that does nothing to a terminal, whatever file it quotes. */
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

/** `12,345.7`: thousands apart, and at most one decimal. */
export function figure(value: number): string {
  const [whole = "", decimals] = String(Math.round(value * 10) / 10).split(".");
  const grouped = whole.replaceAll(/\B(?=(\d{3})+$)/g, ",");
  return decimals === undefined ? grouped : `${grouped}.${decimals}`;
}

/** `0–3, 5 and 7`: neighbours run together. */
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
