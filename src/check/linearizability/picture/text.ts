/**
 * The history of one object as plain text:
 *
 *     process 0  ├ write 1 ──┤
 *                      1
 *     process 1                 ╞═ read → nil ✗╡
 *
 * `├ … ┤` is placed, `┆ … ┆` is not, `╞ … ╡` has no place, and what ends in `~` never returned. A number stands under an
 * operation where it takes effect.
 */
import type { Finding } from "../check.ts";
import { captionOf, omissions } from "./caption.ts";
import { type Bar, type Layout, layOut, type Standing } from "./layout.ts";
import type { PictureOptions } from "./svg.ts";

const metrics = { text: (content: string): number => [...content].length, gap: 4, padding: 5 };

const STROKES: Readonly<Record<Standing, { left: string; line: string; right: string }>> = {
  placed: { left: "├", line: "─", right: "┤" },
  unplaced: { left: "┆", line: "╌", right: "┆" },
  culprit: { left: "╞", line: "═", right: "╡" },
};

/** As wide as the operations need, 20 of them unless told; no colours. */
export function drawText(finding: Finding, options: PictureOptions): string {
  const { title, sentences } = captionOf(finding, options.model);
  const layout = layOut(finding, options.remarks ?? [], options.maxOperations ?? 20, metrics);
  const { left, points } = layout;
  const lines = [
    title,
    ...sentences,
    ...omissions(left),
    "",
    ...rowsOf(layout),
    ...(points.length > 0 ? [stateLine(layout)] : []),
  ];
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

const margin = (words: string): string => words.padEnd(12);

function rowsOf({ rows, bars, points, width, remarks }: Layout): string[] {
  const notes = remarks.map(({ x, text }) => ({ at: Math.round(x), text: `▾ ${text}` }));
  const lines = notes.length > 0 ? [margin("") + written(notes, width)] : [];
  for (const [row, { process }] of rows.entries()) {
    const name = rows[row - 1]?.process === process ? "" : `process ${process} `;
    const own = bars.filter((bar) => bar.row === row).map((bar) => ({ at: Math.round(bar.from), text: barText(bar) }));
    const numbers = points.filter((point) => point.row === row);
    lines.push(margin(name) + written(own, width));
    lines.push(
      margin("") +
        written(
          numbers.map(({ x, number }) => ({ at: Math.round(x), text: String(number) })),
          width,
        ),
    );
  }
  return lines;
}

function barText({ from, to, label, standing, operation }: Bar): string {
  const { left, line, right } = STROKES[standing];
  const end = operation.return === null ? "~" : right;
  const mark = standing === "culprit" ? ` ${label} ✗` : ` ${label} `;
  return left + mark.padEnd(Math.round(to) - Math.round(from) - 1, line) + end;
}

function stateLine({ points, width }: Layout): string {
  const changes = points.filter(({ state }) => state !== null);
  return (
    margin("state") +
    written(
      changes.map(({ x, state }) => ({ at: Math.round(x), text: `|${state}` })),
      width,
    )
  );
}

/** Pieces on one line; one that would cover the piece before it moves to the right. */
function written(pieces: readonly { readonly at: number; readonly text: string }[], width: number): string {
  let line = "";
  for (const { at, text } of [...pieces].sort((a, b) => a.at - b.at)) {
    const gap = line === "" || line.length < at ? "" : " ";
    line = line.padEnd(at) + (line.length > at ? gap : "") + text;
  }
  return line.padEnd(Math.min(width, 1));
}
