import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FIRST_CLIENT } from "../../protocols/service/coordination-service/operations.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { ClientNumbers, type Unnumbered } from "./client-numbers.ts";

const ALONE = "only 1 of 3 members can be reached, and a majority is needed";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A log whose answers are controlled by the test. */
class Log {
  readonly platform = realPlatform;
  leader: number | null = 1;
  why = "";
  #revision = 0;
  #asked: { resolve(done: { revision: number }): void; reject(error: Error): void }[] = [];

  submit(): Promise<never> {
    return new Promise<{ revision: number }>((resolve, reject) => {
      this.#asked.push({ resolve, reject });
    }) as Promise<never>;
  }

  get underWay(): number {
    return this.#asked.length;
  }

  async answers(error?: Error): Promise<void> {
    const asked = this.#asked;
    this.#asked = [];
    for (const { resolve, reject } of asked) {
      this.#revision += 1;
      if (error === undefined) resolve({ revision: this.#revision });
      else reject(error);
    }
    await vi.advanceTimersByTimeAsync(0);
  }
}

class Waiting implements Unnumbered {
  client: number | null = null;
  farewell: string | null = null;
  constructor(readonly numbers: ClientNumbers) {
    numbers.wait(this);
  }

  welcome(client: number): void {
    this.client = client - FIRST_CLIENT;
  }

  dismiss(code: string, reason: string, isFinal: boolean): void {
    this.numbers.forget(this);
    this.farewell = `${code}, ${isFinal ? "finally" : "here"}: ${reason}`;
  }
}

describe("client ids", () => {
  it("are requested once there is a leader, for at most 64 waiting clients, and then for the next", async () => {
    const log = new Log();
    log.leader = null;
    const numbers = new ClientNumbers(log);
    const clients = Array.from({ length: 70 }, () => new Waiting(numbers));
    expect(log.underWay).toBe(0);
    log.leader = 2;
    numbers.ask();
    numbers.ask();
    expect(log.underWay).toBe(64);
    await log.answers();
    expect(log.underWay).toBe(6);
    await log.answers();
    expect(log.underWay).toBe(0);
    expect(clients.map(({ client }) => client)).toEqual(Array.from({ length: 70 }, (_, at) => at + 1));
  });

  it("go to the clients that wait when they arrive, and are not requested for disconnected ones", async () => {
    const log = new Log();
    const numbers = new ClientNumbers(log);
    const gone = Array.from({ length: 2_000 }, () => new Waiting(numbers));
    for (const each of gone) numbers.forget(each);
    const here = new Waiting(numbers);
    expect(log.underWay).toBe(1);
    await log.answers();
    expect(here.client).toBe(1);
    expect(log.underWay).toBe(0);
    expect(gone.every(({ client, farewell }) => client === null && farewell === null)).toBe(true);
  });

  it("that the log refuses are reported, and the next are requested", async () => {
    const log = new Log();
    const numbers = new ClientNumbers(log);
    const [first, second] = [new Waiting(numbers), new Waiting(numbers)];
    await log.answers(new Error("the state is full"));
    expect(first.farewell).toBe("unavailable, here: the state is full");
    await log.answers();
    expect(second.client).toBe(2);
  });

  it.each([
    ["", ""],
    [ALONE, `: ${ALONE}`],
  ])("that do not arrive are not awaited for longer than a client waits: %s", async (why, said) => {
    const log = new Log();
    log.why = why;
    const client = new Waiting(new ClientNumbers(log));
    await vi.advanceTimersByTimeAsync(1_499);
    expect(client.farewell).toBeNull();
    await vi.advanceTimersByTimeAsync(1);
    expect(client.farewell).toBe(`unavailable, here: no answer from the cluster's log within 1500 ms${said}`);
    await log.answers();
    expect(client.client).toBeNull();
  });
});
