import { beforeEach, expect, test, vi } from "vitest";
import type { Request, Response } from "./answers.ts";
import { EngineClient } from "./client.ts";

/** A worker that answers when the test calls it. */
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

  /** Fails as in browsers: the event has no message if the file could not be loaded. */
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

test("gets a form that is requested during a stop from the next worker", async () => {
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

test("starts no worker before the next request if none is open", async () => {
  const client = new EngineClient();
  const run = client.run({ protocol: "bully" });
  client.stop();
  await expect(run).rejects.toThrow("stopped");
  expect(workers).toHaveLength(1);
});

test("reports a worker that could not be loaded, and starts another for the next request", async () => {
  const client = new EngineClient();
  const run = client.run({ protocol: "bully" });
  const form = client.form("bully", "");
  worker(0).fail();
  await expect(run).rejects.toThrow("the worker could not be loaded");
  await expect(form).rejects.toThrow("the worker could not be loaded");
  expect(worker(0).isEnded).toBe(true);
  const again = client.run({ protocol: "raft" });
  worker(0).fail(); // No request waits for this worker anymore.
  worker(1).answer({ id: worker(1).asked[0]?.id ?? -1, value: "made" });
  expect(await again).toBe("made");
});

test("reports a worker's own error message", async () => {
  const run = new EngineClient().run({ protocol: "bully" });
  worker(0).fail("out of memory");
  await expect(run).rejects.toThrow("out of memory");
});

test("sends the recordings to a new worker first", async () => {
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
