/** What a command reports: a value for programs, which `--json` prints, and sections of text for people. One printer renders both. */

import { constants } from "node:os";
import { stripVTControlCharacters, styleText } from "node:util";
import { errorLine, wrapped } from "../experiment/paragraph.ts";

export interface Report {
  readonly json: unknown;
  readonly sections: readonly Section[];
}

/** Printed with an empty line between them; an empty section is left out. */
export type Section = readonly Block[];

/** A line as it is; rows of columns, under a heading if there is one; or names, each with a text that is broken into lines. */
export type Block =
  | string
  | { readonly head?: readonly string[]; readonly columns: readonly (readonly string[])[] }
  | { readonly named: readonly (readonly [name: string, text: string])[]; readonly width?: number };

/** With `--json` the value, in one line; otherwise the text. */
export function print({ json, sections }: Report, options: { readonly json?: boolean }, stdout: Output): void {
  if (options.json === true) stdout.write(`${JSON.stringify(json)}\n`);
  else printText(textOf(sections), stdout);
}

/** Colors only on a terminal, unless NO_COLOR is set. */
export function printText(text: string, stdout: Output): void {
  const isColored = stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  stdout.write(isColored ? text : stripVTControlCharacters(text));
}

/** A line on stderr, beside the output of a command. */
export const say = (text: string): void => void process.stderr.write(`coterie: ${errorLine(text)}\n`);

type Style = Parameters<typeof styleText>[0];

/** The printer removes styles where the output shows none. */
export const styled = (style: Style, text: string): string =>
  text === "" ? "" : styleText(style, text, { validateStream: false });

export const marks = {
  holds: styled("green", "✓"),
  violated: styled("red", "✗"),
  unknown: styled("yellow", "?"),
} as const;

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

/** Columns as wide as their widest cell, two spaces apart. */
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

/** Broken into lines that fit; those after the first begin in the column `indent`. */
export const broken = (text: string, indent: number): string => wrapped(text, indent, undefined, shownLength);
/** The same, two columns to the right. */
export const indented = (text: string): string => `  ${broken(text, 2)}`;

const shownLength = (text: string): number => stripVTControlCharacters(text).length;
const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - shownLength(text)));

/** `1, 2 and 3`. */
export function list(nodes: readonly number[]): string {
  return nodes.length < 2 ? nodes.join("") : `${nodes.slice(0, -1).join(", ")} and ${nodes.at(-1)}`;
}

/** Where a command writes; `process.stdout` is one. */
export interface Output {
  write(content: string | Uint8Array): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface Invocation {
  /** Without the names of the program and the script. */
  readonly words: readonly string[];
  readonly stdout: Output;
  readonly stderr: Output;
  /** Whether long work is done on threads of its own, so that this one can show its progress and hear Ctrl-C. */
  readonly usesThreads: boolean;
}

export class ExitWith extends Error {
  constructor(
    readonly exitCode: number,
    message = "",
  ) {
    super(message);
  }
}

/** What shells give as the exit code of a process that a signal has ended. */
export const codeAfter = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

const FIRST_AFTER_MS = 500;
const EVERY_MS = 200;

export interface ProgressLine {
  /** Shows a line, unless one was shown just now. */
  show(text: () => string): void;
  clear(): void;
}

/** @param logEveryMs how often a line is written where no terminal rewrites it; never by default. */
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

/** @returns what ends listening. */
export function onceUnread(stop: () => void): () => void {
  process.stdout.once("error", stop);
  return () => process.stdout.off("error", stop);
}
