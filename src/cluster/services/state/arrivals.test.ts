/**
 * Checks how an arrival at a barrier handles the log's answers and missed events. The test plays the service and
 * answers each request.
 */
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Operation, Query } from "../../../protocols/service/coordination-service/operations.ts";
import { newCounts } from "../../../runtime/metrics.ts";
import { realPlatform } from "../../../runtime/platform/real.ts";
import { Arrivals } from "./arrivals.ts";
import type { Listener, Service, Told } from "./service.ts";
import { Waiters } from "./waiters.ts";

const SESSION = 7;
const NEXT = 9;

interface Asked {
  readonly operation: Operation | Query;
  answer(what: object): Promise<void>;
}

/** Requests wait until the test answers them. */
class PlayedService {
  readonly platform = realPlatform;
  readonly self = 1;
  readonly counts = newCounts();
  readonly maxWaiters = 10;
  readonly why = "";
  readonly closed = null;
  session: number | null = SESSION;
  readonly #asked: Asked[] = [];
  #listener: Listener = () => {};
  #number = 0;

  use(): void {}
  number = () => ++this.#number;
  isOwn = () => false; // Ended sessions do not belong to this member, but events about them may still arrive.
  submit = (operation: Operation) => this.#ask(operation);
  query = (query: Query) => this.#ask(query);
  listen(listener: Listener): () => void {
    this.#listener = listener;
    return () => {};
  }

  tell(event: Told): void {
    this.#listener(event, null);
  }

  /** The oldest unanswered request. */
  get next(): Asked {
    const [first] = this.#asked.splice(0, 1);
    if (first === undefined) throw new Error("nothing is asked for");
    return first;
  }

  get isAsked(): boolean {
    return this.#asked.length > 0;
  }

  #ask(operation: Operation | Query): Promise<object> {
    return new Promise((resolve) => {
      const answer = async (what: object): Promise<void> => {
        resolve(what);
        await turn();
      };
      this.#asked.push({ operation, answer });
    });
  }
}

const waiting = { session: SESSION, result: { type: "waiting", ahead: 1 } };
const done = { session: NEXT, result: { type: "done" } };
const restored: Told = { type: "restored", revision: 20 };
const passed: Told = {
  type: "passed",
  name: "start",
  generation: 15,
  arrivals: [
    { session: SESSION, wait: 1 },
    { session: 8, wait: 1 },
  ],
};

function arriving() {
  const service = new PlayedService();
  const arrivals = new Arrivals(service as unknown as Service, new Waiters(service));
  let end: unknown = "waits";
  arrivals.arrive({ name: "start", parties: 2 }, {}).then(
    (generation) => {
      end = generation;
    },
    (error: unknown) => {
      end = error;
    },
  );
  return { service, end: () => end };
}

async function arrived() {
  const played = arriving();
  const { operation, answer } = played.service.next;
  expect(operation).toEqual({ type: "arrive", name: "start", wait: 1, parties: 2 });
  await answer(waiting);
  return played;
}

/**
 * Answers the requests that find out the outcome of an arrival: a numbered operation of its session, the withdrawal of
 * that operation, and the query itself.
 */
async function lookedUp(service: PlayedService, state: string): Promise<void> {
  await numbered(service.next);
  expect(service.next.operation.type).toBe("withdraw");
  const { operation, answer } = service.next;
  expect(operation).toEqual({ type: "arrival", name: "start", session: SESSION, wait: 1 });
  await answer({ revision: 22, answer: { type: "arrival", state } });
}

async function numbered({ operation, answer }: Asked): Promise<void> {
  expect(operation).toMatchObject({ type: "acquire", name: "arrival/start", mode: "shared" });
  await answer({ session: SESSION, result: { type: "granted", token: 21 } });
}

test("waiting when a snapshot replaces the log is not repeated, and passes with the others", async () => {
  const { service, end } = await arrived();
  service.tell(restored);
  await lookedUp(service, "waiting");
  expect([service.isAsked, end()]).toEqual([false, "waits"]);
  service.tell(passed);
  await turn();
  expect(end()).toBe(15);
});

test("that has passed when a snapshot replaces the log ends, and is not repeated", async () => {
  const { service, end } = await arrived();
  service.tell(restored);
  await lookedUp(service, "passed");
  expect([service.isAsked, end()]).toEqual([false, 21]);
});

test("whose answer arrives after a snapshot is queried as well", async () => {
  const { service, end } = arriving();
  service.tell(restored);
  await service.next.answer(waiting);
  await lookedUp(service, "passed");
  expect(end()).toBe(21);
});

test("reports an unknown outcome if its session ended and it may have passed before", async () => {
  const { service, end } = await arrived();
  service.tell(restored);
  await lookedUp(service, "unknown");
  expect(end()).toMatchObject({ code: "outcome-unknown", phase: "uncertain" });
});

test("is queried again after another snapshot, and the earlier answer does not count", async () => {
  const { service, end } = await arrived();
  service.tell(restored);
  const first = service.next;
  service.tell(restored);
  await numbered(first);
  const second = service.next;
  expect(service.next.operation.type).toBe("withdraw");
  await numbered(second);
  expect(service.next.operation.type).toBe("withdraw");
  await service.next.answer({ revision: 22, answer: { type: "arrival", state: "passed" } });
  expect([service.isAsked, end()]).toEqual([false, 21]);
});

test("of an ended session is withdrawn, and then repeated: it may pass until then", async () => {
  for (const isPassed of [false, true]) {
    const { service, end } = await arrived();
    service.session = null;
    service.tell({ type: "lost", session: SESSION });
    const { operation, answer } = service.next;
    expect(operation).toEqual({ type: "leave", name: "start", wait: 1 });
    expect(service.isAsked).toBe(false);
    if (isPassed) service.tell(passed);
    await answer(done);
    if (isPassed) expect([service.isAsked, end()]).toEqual([false, 15]);
    else expect(service.next.operation).toEqual({ type: "arrive", name: "start", wait: 2, parties: 2 });
  }
});

test("passes although the event came before its session was known, and in a different session than the current one", async () => {
  const { service, end } = arriving();
  service.session = NEXT;
  service.tell(passed);
  await service.next.answer(waiting);
  expect([service.isAsked, end()]).toEqual([false, 15]);
});

test("does not pass with an arrival of another member that has the same number", async () => {
  const { service, end } = await arrived();
  service.tell({ ...passed, arrivals: [{ session: 8, wait: 1 }] });
  service.tell({ ...passed, name: "finish" });
  await turn();
  expect(end()).toBe("waits");
});

test("in a session when a snapshot replaced that session's end may have passed", async () => {
  const { service, end } = await arrived();
  service.tell({ type: "lost", session: SESSION });
  service.tell(restored);
  await service.next.answer(done);
  expect(end()).toMatchObject({ code: "outcome-unknown", phase: "uncertain" });
});
