/**
 * Checks callers that wait for a lock, and grants that are lost before their caller receives them. The test plays the
 * service.
 */
import { expect, test } from "vitest";
import { newCounts } from "../../../runtime/metrics.ts";
import { realPlatform } from "../../../runtime/platform/real.ts";
import { CoordinationError } from "../coordination-error.ts";
import { Grants, SharedMutex } from "./named-grants.ts";
import type { Listener, Service, Told } from "./service.ts";
import { Waiters } from "./waiters.ts";
import { Waits } from "./waits.ts";

type Outcome = { readonly result: object } | { readonly error: Error };

class PlayedService {
  readonly platform = realPlatform;
  readonly self = 1;
  readonly counts = newCounts();
  readonly maxWaiters = 10_000;
  readonly why = "";
  readonly closed = null;
  readonly asked: string[] = [];
  session = 1;
  until: number | null = null;
  listener: Listener = () => {};
  readonly #outcomes: Outcome[];
  #number = 0;

  /** @param outcomes the outcomes of the first requests, if they do not wait in a queue */
  constructor(...outcomes: Outcome[]) {
    this.#outcomes = outcomes;
  }

  use(): void {}
  number = () => ++this.#number;
  isOwn = () => true;
  isOfThisRun = () => true;

  submit({ type, wait }: { type: string; wait: number }): Promise<object> {
    this.asked.push(`${type} ${wait}`);
    const outcome = this.#outcomes.shift() ?? { result: { type: "waiting", ahead: 0 } };
    if ("error" in outcome) return Promise.reject(outcome.error);
    return Promise.resolve({ revision: 1, session: this.session, result: outcome.result });
  }

  listen(listener: Listener): () => void {
    this.listener = listener;
    return () => {};
  }

  tell(event: object, until: number | null = null): void {
    this.listener(event as Told, until);
  }

  grant(wait: number, name: string): void {
    this.tell({ type: "granted", session: this.session, wait, name, token: wait * 10 });
  }

  confirm(until: number): void {
    this.until = until;
    this.tell({ type: "confirmed", session: this.session }, until);
  }

  lose(): void {
    const { session } = this;
    this.until = null;
    this.tell({ type: "lost", session });
    this.session += 1;
  }
}

function locks(service: PlayedService): (name: string) => SharedMutex {
  const played = service as unknown as Service;
  const grants = new Grants(played, new Waits(played, new Waiters(played)));
  return (name) => new SharedMutex(name, grants);
}

const soon = (): number => performance.now() + 60_000;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("callers whose session is lost between grant and hand-over wait again in the next session", async () => {
  const service = new PlayedService();
  const mutex = locks(service);
  const names = Array.from({ length: 1_000 }, (_, at) => `lock-${at}`);
  const waits = names.map((name) => mutex(name).acquire());
  await turn();
  for (const [at, name] of names.entries()) service.grant(at + 1, `mutex/${name}`);
  service.confirm(soon());
  service.lose(); // Before any caller has continued.
  await turn();
  for (const [at, name] of names.entries()) service.grant(at + 1_001, `mutex/${name}`);
  service.confirm(soon());
  const grants = await Promise.all(waits);
  expect(grants.filter(({ isHeld }) => isHeld)).toHaveLength(1_000);
  expect(grants[0]).toMatchObject({ token: 10_010 });
});

test("a grant that has expired at its hand-over is released, and its caller waits again", async () => {
  const service = new PlayedService();
  const waiting = locks(service)("report").acquire();
  await turn();
  service.grant(1, "mutex/report");
  const until = performance.now() + 1;
  service.confirm(until);
  while (performance.now() < until); // The process is busy with other grants.
  await turn();
  expect(service.asked).toEqual(["acquire 1", "withdraw 1", "acquire 2"]);
  service.grant(2, "mutex/report");
  service.confirm(soon());
  expect(await waiting).toMatchObject({ token: 20, isHeld: true });
});

test("a caller that gives up at the hand-over of a grant releases it", async () => {
  const service = new PlayedService();
  const abort = new AbortController();
  const waiting = locks(service)("report").acquire({ signal: abort.signal });
  service.grant(1, "mutex/report");
  service.confirm(soon());
  abort.abort();
  await expect(waiting).rejects.toMatchObject({ code: "acquire-aborted", phase: "never-acquired" });
  expect(service.asked).toEqual(["acquire 1", "withdraw 1"]);
});

test("a caller whose member leaves at the hand-over of a grant gets the reason", async () => {
  const service = new PlayedService();
  const waiting = locks(service)("report").acquire();
  service.grant(1, "mutex/report");
  service.confirm(soon());
  service.tell({ type: "closed", reason: new CoordinationError("member-left", "lost", "member 1 has left") });
  await expect(waiting).rejects.toMatchObject({ code: "member-left", phase: "never-acquired" });
});

test("a request with an unknown outcome is withdrawn and made again", async () => {
  const service = new PlayedService({ error: new CoordinationError("outcome-unknown", "uncertain", "unknown") });
  const waiting = locks(service)("report").acquire();
  await expect.poll(() => service.asked).toEqual(["acquire 1", "withdraw 1", "acquire 2"]);
  service.grant(2, "mutex/report");
  service.confirm(soon());
  expect(await waiting).toMatchObject({ token: 20, isHeld: true });
});
