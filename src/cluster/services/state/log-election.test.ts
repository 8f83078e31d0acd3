/** Checks how an election on the log handles refusals. The test plays the service and answers each request. */
import { expect, test } from "vitest";
import { UsageError } from "../../../core/errors.ts";
import type { Operation } from "../../../protocols/service/coordination-service/operations.ts";
import { newCounts } from "../../../runtime/metrics.ts";
import { realPlatform } from "../../../runtime/platform/real.ts";
import { CoordinationError } from "../coordination-error.ts";
import { LogElection } from "./log-election.ts";
import type { Listener, Service } from "./service.ts";

const SESSION = 7;
const error = (code: CoordinationError["code"]): CoordinationError => new CoordinationError(code, "never-sent", code);

/** Answers candidacies in turn: with an error, or with a grant. */
class PlayedService {
  readonly platform = realPlatform;
  readonly self = 1;
  readonly counts = newCounts();
  readonly maxWaiters = 10;
  session: number | null = SESSION;
  until: number | null = performance.now() + 60_000;
  revision = null;
  closed: CoordinationError | null = null;
  readonly asked: Operation[] = [];
  readonly #answers: (Error | "granted")[];
  readonly #listeners = new Set<Listener>();
  #number = 0;

  constructor(...answers: (Error | "granted")[]) {
    this.#answers = answers;
  }

  use(): void {
    if (this.closed !== null) throw this.closed;
  }
  current = () => Promise.resolve(0);
  isOwn = (session: number) => session === SESSION;
  isOfThisRun = this.isOwn;
  number = () => ++this.#number;
  query = () => new Promise(() => {});
  follow = () => () => {};
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
  tell(...event: Parameters<Listener>): void {
    for (const listener of this.#listeners) listener(...event);
  }

  submit(operation: Operation): Promise<unknown> {
    return new Promise((resolve) => resolve(this.#answerTo(operation)));
  }

  #answerTo(operation: Operation) {
    this.use();
    this.asked.push(operation);
    if (operation.type !== "acquire") return { revision: 1, result: { type: "done" } };
    const answer = this.#answers.shift();
    if (answer instanceof Error) throw answer;
    return {
      revision: 1,
      result: answer === "granted" ? { type: "granted", token: 5 } : { type: "waiting", ahead: 1 },
    };
  }
}

const electionOn = (service: PlayedService): LogElection =>
  new LogElection(service as unknown as Service, { name: "report", onChange() {} });

test.each([error("forbidden"), error("state-full"), new UsageError("other-setting", "other-setting")])(
  "ends the campaign with the error of a final refusal, and another campaign may begin: $code",
  async (refused) => {
    const service = new PlayedService(refused, refused, "granted");
    const { local } = electionOn(service);
    for (const _ of [1, 2]) await expect(local.lead(() => "led")).rejects.toBe(refused);
    expect(local.isUsed).toBe(false);
    expect(await local.lead(() => "led")).toBe("led");
  },
);

test.each(["overloaded", "session-ended"] as const)(
  "repeats the request after a temporary refusal: %s",
  async (code) => {
    const service = new PlayedService(error(code), error(code), "granted");
    expect(await electionOn(service).local.lead(() => "led")).toBe("led");
  },
);

test("withdraws a request with an unknown outcome, and makes another one", async () => {
  const service = new PlayedService(error("outcome-unknown"), "granted");
  expect(await electionOn(service).local.lead(() => "led")).toBe("led");
  const asked = service.asked.map((operation) => [operation.type, "wait" in operation ? operation.wait : null]);
  expect(asked).toEqual([
    ["acquire", 1],
    ["withdraw", 1],
    ["acquire", 2],
    ["withdraw", 2],
  ]);
});

test("ignores a refusal after the grant", async () => {
  let refuse = (_: Error): void => {};
  const service = new PlayedService();
  const { submit } = PlayedService.prototype;
  service.submit = async (operation) => {
    await submit.call(service, operation);
    return new Promise((_resolve, reject) => {
      refuse = reject;
    });
  };
  const { local } = electionOn(service);
  const led = local.lead(async ({ token }) => {
    refuse(error("state-full"));
    await new Promise(setImmediate);
    return token;
  });
  service.tell({ type: "granted", name: "election/report", session: SESSION, wait: 1, token: 5, note: "" }, null);
  expect(await led).toBe(5);
});

test("reports a refusal during work that ends after a loss only once it has ended", async () => {
  const service = new PlayedService("granted", error("state-full"));
  const { local } = electionOn(service);
  const ends: string[] = [];
  const led = local.lead(async ({ signal }) => {
    service.tell({ type: "lost", session: SESSION }, null);
    expect(signal.aborted).toBe(true);
    await new Promise(setImmediate); // Refused in the meantime.
    ends.push("work");
  });
  await expect(led.finally(() => ends.push("campaign"))).rejects.toMatchObject({ code: "state-full" });
  expect(ends).toEqual(["work", "campaign"]);
});

test("an election opened on a closed service has no leader, and rejects with the reason", async () => {
  const service = new PlayedService();
  service.closed = error("client-closed");
  const { local } = electionOn(service);
  await expect(local.lead(() => "led")).rejects.toMatchObject({ code: "client-closed" });
  const seen: (number | null)[] = [];
  for await (const { leader } of local.watch()) seen.push(leader);
  expect(seen).toEqual([null]);
});
