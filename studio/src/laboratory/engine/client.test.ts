import { beforeEach, expect, test, vi } from "vitest";
import type { Request, Response } from "./answers.ts";
import { EngineClient } from "./client.ts";

/** A worker that answers when the test says so. */
class HeldWorker extends EventTarget {
  readonly asked: Request[] = [];
  isEnded = false;

  constructor() {
    super();
    workers.push(this);
  }

  postMessage(asked: Request): void {
    this.asked.push(asked);
  }

  terminate(): void {
    this.isEnded = true;
  }

  answer(answer: Response): void {
    this.dispatchEvent(Object.assign(new Event("message"), { data: answer }));
  }

  /** As a browser does: of a file that could not be loaded it says nothing. */
  fail(message?: string): void {
    this.dispatchEvent(Object.assign(new Event("error"), { message }));
  }
}

let workers: HeldWorker[] = [];
beforeEach(() => {
  workers = [];
  vi.stubGlobal("Worker", HeldWorker);
  return () => vi.unstubAllGlobals();
});

const worker = (place: number): HeldWorker => {
  const found = workers[place];
  if (found === undefined) throw new Error(`expected a worker ${place}, got ${workers.length}`);
  return found;
};
const what = ({ asked }: HeldWorker): string[] => asked.map((question) => question.method);

test("a form that is asked for while a check is stopped comes from the next worker", async () => {
  const client = new EngineClient();
  const check = client.check({ protocol: "raft" }, () => {});
  const form = client.form("bully", "");
  client.stop();
  await expect(check).rejects.toThrow("stopped");
  expect(worker(0).isEnded).toBe(true);
  expect(what(worker(1))).toEqual(["form"]);
  const made = { run: [], check: [], variants: [], options: [] };
  worker(1).answer({ id: worker(1).asked[0]?.id ?? -1, value: made });
  expect(await form).toBe(made);
});

test("where nothing is left to be answered, no worker is begun before the next question", async () => {
  const client = new EngineClient();
  const run = client.run({ protocol: "bully" });
  client.stop();
  await expect(run).rejects.toThrow("stopped");
  expect(workers).toHaveLength(1);
});

test("a worker that could not be loaded is told, and the next question has another", async () => {
  const client = new EngineClient();
  const run = client.run({ protocol: "bully" });
  const form = client.form("bully", "");
  worker(0).fail();
  await expect(run).rejects.toThrow("the worker could not be loaded");
  await expect(form).rejects.toThrow("the worker could not be loaded");
  expect(worker(0).isEnded).toBe(true);
  const again = client.run({ protocol: "raft" });
  worker(0).fail(); // It is nobody's any more.
  worker(1).answer({ id: worker(1).asked[0]?.id ?? -1, value: "made" });
  expect(await again).toBe("made");
});

test("what a worker says of its failure is told", async () => {
  const run = new EngineClient().run({ protocol: "bully" });
  worker(0).fail("out of memory");
  await expect(run).rejects.toThrow("out of memory");
});

test("a worker that takes the place of another is given the recordings first", async () => {
  const client = new EngineClient();
  const opened = client.open("a.jsonl", "text", 4);
  worker(0).answer({ id: worker(0).asked[0]?.id ?? -1, value: { protocol: "bully" } });
  await opened;
  const stopped = client.run({ recording: "a.jsonl" });
  const form = client.form("bully", "");
  client.stop();
  await expect(stopped).rejects.toThrow("stopped");
  expect(what(worker(1))).toEqual(["open", "form"]);
  worker(1).answer({ id: worker(1).asked[1]?.id ?? -1, value: "form" });
  expect(await form).toBe("form");
});
