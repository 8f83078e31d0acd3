/** Splits a stream of text into lines. Long lines are cut off, which bounds memory. */
import type { Readable } from "node:stream";

export function eachLine(stream: Readable, maxLength: number, onLine: (line: string) => void): void {
  let rest = "";
  /** The line was too long, and its beginning has been passed on: skip the rest. */
  let skipping = false;
  const take = (line: string): void => {
    if (!skipping && line !== "") onLine(line.slice(0, maxLength));
    skipping = false;
  };
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const pieces = (rest + text).split("\n");
    rest = pieces.pop() ?? "";
    for (const piece of pieces) take(piece);
    if (rest.length <= maxLength) return;
    take(rest);
    rest = "";
    skipping = true;
  });
  stream.on("end", () => take(rest));
  stream.on("error", () => {}); // The other end has died; earlier lines remain valid.
}
