/** Words for people: colours only where somebody sees them. */
import { styleText } from "node:util";
import type { Output } from "./invocation.ts";

type Style = Parameters<typeof styleText>[0];

export type Paint = (style: Style, text: string) => string;

/** Colours on a terminal, unless NO_COLOR says no. */
export function paintFor(stream: Output): Paint {
  const wanted = stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return wanted ? (style, text) => styleText(style, text) : (_style, text) => text;
}

/** Columns as wide as their widest cell, two spaces apart. `style` paints a cell once its width is settled. */
export function table(
  rows: readonly (readonly string[])[],
  style: (cell: string, row: number, column: number) => string,
): string[] {
  const widths = rows.reduce<number[]>((all, row) => row.map((cell, i) => Math.max(cell.length, all[i] ?? 0)), []);
  return rows.map((row, at) =>
    row
      .map((cell, i) => style(i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0), at, i))
      .join("  ")
      .trimEnd(),
  );
}

export function list(nodes: readonly number[]): string {
  return nodes.length < 2 ? nodes.join("") : `${nodes.slice(0, -1).join(", ")} and ${nodes.at(-1)}`;
}
