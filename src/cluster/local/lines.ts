/** Cuts a stream of text into lines. A line that is too long is cut off: nobody can make us hold more. */
import type { Readable } from "node:stream";

export function eachLine(stream: Readable, maxLength: number, onLine: (line: string) => void): void {
  let rest = "";
  /** The line was too long and has been handed on already: what follows up to its end is left out. */
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
  stream.on("error", () => {}); // The other end has died: what came before it stands.
}
