import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import type { Compared, Look, Request, Response, ShownRun } from "./answers.ts";
import { Laboratory } from "./laboratory.ts";
import { RequestQueue } from "./request-queue.ts";

/** Sends these requests in order, and delivers the scenario file only after all of them. Returns the answers. */
async function answered(questions: readonly Request[]): Promise<unknown[]> {
  let come = () => {};
  const allAsked = new Promise<void>((resolve) => (come = resolve));
  const laboratory = new Laboratory(async (name) => {
    await allAsked;
    return readFile(new URL(`../../../../scenarios/${name}.yaml`, import.meta.url), "utf8");
  });
  const answers: Response[] = [];
  const queue = new RequestQueue(laboratory, (answer) => "progress" in answer || answers.push(answer));
  const all = questions.map((question) => queue.add(question));
  setTimeout(come);
  await Promise.all(all);
  expect(answers.map(({ id }) => id)).toEqual(questions.map(({ id }) => id));
  return answers.map((answer) => ("value" in answer ? answer.value : answer));
}

const slow = { scenario: "raft-leader-crashes" };
const quick = { protocol: "bully", nodes: "3" };

test("returns states of the run that was requested last, even if an earlier run takes longer", async () => {
  const [first, last, look] = await answered([
    { id: 0, method: "run", args: [slow] },
    { id: 1, method: "run", args: [quick] },
    { id: 2, method: "look", args: [0] },
  ]);
  expect([first, last].map((run) => (run as ShownRun).protocol)).toEqual(["raft", "bully"]);
  expect((look as Look).nodes).toHaveLength(3);
});

test("returns states of the runs that were compared last", async () => {
  const [, last, looks] = await answered([
    { id: 0, method: "compare", args: [{ ...slow, protocol: "raft" }] },
    { id: 1, method: "compare", args: [{ ...quick, with: "ring" }] },
    { id: 2, method: "looks", args: [[0, 0]] },
  ]);
  expect((last as Compared[]).map(({ name }) => name)).toEqual(["bully", "ring"]);
  expect((looks as Look[]).map(({ nodes }) => nodes.length)).toEqual([3, 3]);
});

test("continues after an invalid request", async () => {
  const [refused, run] = await answered([
    { id: 0, method: "run", args: [{ protocol: "none" }] },
    { id: 1, method: "run", args: [quick] },
  ]);
  expect(refused).toMatchObject({ id: 0, error: expect.stringContaining("none") });
  expect((run as ShownRun).protocol).toBe("bully");
});
