import { describe, expect, it } from "vitest";
import { Threads, type Work, workTogether } from "./threads.ts";

/** Starts threads that run this code for each task, with a shared array. */
const threads = (code: string, count: number): Threads<"check"> =>
  new Threads("check", count, {
    file: new URL(
      `data:text/javascript,${encodeURIComponent(`
        import { parentPort } from "node:worker_threads";
        parentPort.on("message", (task) => {
          const turn = Atomics.add(task, 0, 1);
          ${code}
        });
      `)}`,
    ),
  });
const turns = (): Work["check"]["task"] => new Int32Array(new SharedArrayBuffer(4)) as never;
const ascending = (numbers: readonly unknown[]): number[] => (numbers as number[]).toSorted((a, b) => a - b);

describe("workTogether", () => {
  it("returns the answer and reports the progress of each thread", async () => {
    const code = `
      parentPort.postMessage({ progress: turn });
      parentPort.postMessage({ progress: turn + 10 });
      parentPort.postMessage({ answer: turn });
    `;
    const seen: (readonly unknown[])[] = [];
    const answers = await workTogether(threads(code, 3), turns(), (progress) => seen.push(progress));
    expect(ascending(answers)).toEqual([0, 1, 2]);
    expect(ascending(seen.at(-1) ?? [])).toEqual([10, 11, 12]);
  });

  it.each([
    ["ends", "process.exit(3);", "a thread ended with code 3"],
    ["fails", "throw new Error('no more');", "no more"],
    ["refuses", "parentPort.postMessage({ error: { name: 'UsageError', code: 'x', message: 'not so' } });", "not so"],
  ])("rejects if one of several threads %s, and ends the others", async (_what, code, message) => {
    const failing = threads(`if (turn === 1) { ${code} } else setInterval(() => {}, 1_000);`, 3);
    await expect(workTogether(failing, turns(), () => {})).rejects.toThrow(message);
  });
});
