/**
 * A command's report: a value for programs (`--json`) and sections of text for people. The same printer renders both.
 */

import { constants } from "node:os";
import { stripVTControlCharacters, styleText } from "node:util";
import { errorLine, wrapped } from "../experiment/paragraph.ts";

export interface Report {
  readonly json: unknown;
  readonly sections: readonly Section[];
}

/** A part of the report. Sections are separated by an empty line. An empty section is not printed. */
export type Section = readonly Block[];

/**
 * A part of a section: a line that is printed unchanged, a table with an optional heading row, or names, each with text
 * that is wrapped.
 */
export type Block =
  | string
  | { readonly head?: readonly string[]; readonly columns: readonly (readonly string[])[] }
  | { readonly named: readonly (readonly [name: string, text: string])[]; readonly width?: number };

/** With `--json`, prints the value on one line. Otherwise, prints the text. */
export function print({ json, sections }: Report, options: { readonly json?: boolean }, stdout: Output): void {
  if (options.json === true) stdout.write(`${JSON.stringify(json)}\n`);
  else printText(textOf(sections), stdout);
}

/** Prints text, with colors only on a terminal and only if NO_COLOR is not set. */
export function printText(text: string, stdout: Output): void {
  const isColored = stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  stdout.write(isColored ? text : stripVTControlCharacters(text));
}

/** Writes a line to stderr, separate from the command's output. */
export const say = (text: string): void => void process.stderr.write(`coterie: ${errorLine(text)}\n`);

type Style = Parameters<typeof styleText>[0];

/** Adds a style. The printer removes it if the output does not support colors. */
export const styled = (style: Style, text: string): string =>
  text === "" ? "" : styleText(style, text, { validateStream: false });

/** The marks for verdicts. */
export const marks = {
  holds: styled("green", "✓"),
  violated: styled("red", "✗"),
  unknown: styled("yellow", "?"),
} as const;

/** Returns the text of a report. */
export const textOf = (sections: readonly Section[]): string =>
  `${sections
    .map((section) => section.flatMap(linesOf))
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;

function linesOf(block: Block): readonly string[] {
  if (typeof block === "string") return [block];
  if ("columns" in block) return columnLines(block.head, block.columns);
  const width = block.width ?? Math.max(0, ...block.named.map(([name]) => shownLength(name)));
  return block.named.map(([name, text]) => `${padded(name, width)}  ${broken(text, width + 2)}`);
}

/** Formats a table. Each column is as wide as its widest cell, and columns are two spaces apart. */
export function columnLines(head: readonly string[] | undefined, rows: readonly (readonly string[])[]): string[] {
  const all = head === undefined ? rows : [head.map((cell) => styled("dim", cell)), ...rows];
  const widths = all.reduce<number[]>(
    (widest, row) => row.map((cell, i) => Math.max(shownLength(cell), widest[i] ?? 0)),
    [],
  );
  return all.map((row) =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : padded(cell, widths[i] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}

/** Wraps text. All lines after the first begin at column `indent`. */
export const broken = (text: string, indent: number): string => wrapped(text, indent, undefined, shownLength);
/** Wraps text and indents all lines by two spaces. */
export const indented = (text: string): string => `  ${broken(text, 2)}`;

const shownLength = (text: string): number => stripVTControlCharacters(text).length;
const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - shownLength(text)));

/** Joins node ids with commas and "and", as in `1, 2 and 3`. */
export function list(nodes: readonly number[]): string {
  return nodes.length < 2 ? nodes.join("") : `${nodes.slice(0, -1).join(", ")} and ${nodes.at(-1)}`;
}

/** A command's output, such as `process.stdout`. */
export interface Output {
  write(content: string | Uint8Array): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** The arguments and output of one run of the program. */
export interface Invocation {
  /** The arguments, without the names of the program and the script. */
  readonly words: readonly string[];
  readonly stdout: Output;
  readonly stderr: Output;
  /** Whether long work runs on worker threads, so that this thread can show progress and handle Ctrl-C. */
  readonly usesThreads: boolean;
}

/** Thrown to end the program with this exit code. */
export class ExitWith extends Error {
  constructor(
    readonly exitCode: number,
    message = "",
  ) {
    super(message);
  }
}

/** Returns the exit code that shells report for a process that was ended by a signal. */
export const codeAfter = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

const FIRST_AFTER_MS = 500;
const EVERY_MS = 200;

/** A line that is replaced while a command is working. */
export interface ProgressLine {
  /** Shows a line, unless the previous one was shown too recently. */
  show(text: () => string): void;
  clear(): void;
}

/**
 * Creates a progress line that is rewritten in place on a terminal.
 * @param logEveryMs how often to write a line if the output is not a terminal. Default: never
 */
export function progressLine(stream: Output, logEveryMs = Number.POSITIVE_INFINITY): ProgressLine {
  let due = Date.now() + (stream.isTTY === true ? FIRST_AFTER_MS : logEveryMs);
  let isShown = false;
  return {
    show(text) {
      const now = Date.now();
      if (now < due) return;
      due = now + (stream.isTTY === true ? EVERY_MS : logEveryMs);
      if (stream.isTTY !== true) return void stream.write(`${text()}\n`);
      isShown = true;
      stream.write(`\r\u001b[K${text()}`);
    },
    clear() {
      if (isShown) stream.write("\r\u001b[K");
      isShown = false;
    },
  };
}

/**
 * Calls `stop` if the reader of stdout closes the pipe.
 * @returns a function that removes the listener
 */
export function onceUnread(stop: () => void): () => void {
  process.stdout.once("error", stop);
  return () => process.stdout.off("error", stop);
}
