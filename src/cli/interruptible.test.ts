import { describe, expect, it } from "vitest";
import { workApart, workTogether } from "./interruptible.ts";

/** What a thread runs, with `request` an array that threads share. */
const thread = (code: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort, workerData } from "node:worker_threads";
      const { request, stop } = workerData;
      const turn = Atomics.add(request, 0, 1);
      ${code}
    `)}`,
  );
const turns = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));

const ascending = (a: number, b: number): number => a - b;

describe("work on threads", () => {
  it("one answer from each, and how far each is", async () => {
    const file = thread(`
      parentPort.postMessage({ progress: turn });
      parentPort.postMessage({ progress: turn + 10 });
      parentPort.postMessage({ answer: turn });
    `);
    const seen: (readonly number[])[] = [];
    const { answer, isStopped } = await workTogether<Int32Array, number, number>(file, turns(), 3, (progress) => {
      seen.push(progress);
    });
    expect([answer.toSorted(ascending), isStopped]).toEqual([[0, 1, 2], false]);
    expect(seen.at(-1)?.toSorted(ascending)).toEqual([10, 11, 12]);
    expect(await workApart<Int32Array, number, number>(file, turns(), () => {})).toEqual({
      answer: 0,
      isStopped: false,
    });
  });

  it.each([
    ["ends", "process.exit(3);", "the search ended with code 3"],
    ["fails", "throw new Error('no more');", "no more"],
    ["refuses", "parentPort.postMessage({ error: { name: 'UsageError', code: 'x', message: 'not so' } });", "not so"],
  ])("one of several that %s is an error, and the others are ended", async (_what, code, message) => {
    const file = thread(`if (turn === 1) { ${code} } else setInterval(() => {}, 1_000);`);
    await expect(workTogether(file, turns(), 3, () => {})).rejects.toThrow(message);
  });
});
