import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { eachLine } from "./lines.ts";

async function cut(chunks: (string | Buffer)[], maxLength: number): Promise<string[]> {
  const stream = new PassThrough();
  const lines: string[] = [];
  eachLine(stream, maxLength, (line) => lines.push(line));
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  await new Promise((resolve) => stream.on("close", resolve));
  return lines;
}

test("joins lines, and characters, from chunks", async () => {
  const letter = Buffer.from("é");
  expect(await cut(["a", "b\nc", letter.subarray(0, 1), letter.subarray(1), "\n\nlast"], 10)).toEqual([
    "ab",
    "cé",
    "last",
  ]);
});

test("cuts off a long line, and keeps the next one whole", async () => {
  expect(await cut(["12345", "6789", "0\nnext\n"], 4)).toEqual(["1234", "next"]);
  expect(await cut(["123456\nnext\n"], 4)).toEqual(["1234", "next"]);
});
