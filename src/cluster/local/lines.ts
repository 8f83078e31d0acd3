/** Splits a stream of text into lines. Long lines are truncated, which bounds memory usage. */
import type { Readable } from "node:stream";

/** Calls `onLine` for each line. Characters beyond `maxLength` are dropped. */
export function eachLine(stream: Readable, maxLength: number, onLine: (line: string) => void): void {
  let rest = "";
  /** Whether to skip the rest of a line that was too long. Its beginning has already been passed on. */
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
  stream.on("error", () => {}); // The other end has died. The lines received so far remain valid.
}
