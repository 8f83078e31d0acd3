/** What a program makes of a member's words: here of one that says what the test wants. */

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PATIENCE } from "../../test/patience.ts";
import type { Tenure } from "../cluster/services/api.ts";
import { toMonotonicNs } from "../cluster/services/session-clock.ts";
import { throughMember } from "./through-member.ts";

const FAR_MS = 3_600_000;

/** Every request but those that open a session, and the answers to those that do. */
let asked: string[];
let answers: ServerResponse[];
let bodies: unknown[];
let status: number;
let close: () => void;
let access: ReturnType<typeof throughMember>;

beforeEach(async () => {
  asked = [];
  answers = [];
  bodies = [];
  status = 200;
  const server = createServer((incoming, answer) => {
    if (incoming.method !== "POST") {
      asked.push(`${incoming.method} ${incoming.url}`);
      return void answer.end("{}");
    }
    incoming.on("data", (body: Buffer) => bodies.push(JSON.parse(String(body))));
    asked.push(`POST ${incoming.url}`);
    answer.statusCode = status;
    if (status !== 200) return void answer.end('{"error":"in the member\'s words"}');
    answer.flushHeaders();
    answers.push(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  close = () => {
    server.closeAllConnections();
    server.close();
  };
  access = throughMember(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterEach(() => close());

const answerAt = (n: number): Promise<ServerResponse> => vi.waitUntil(() => answers[n - 1], PATIENCE);
const say = (answer: ServerResponse, word: object): void => void answer.write(`${JSON.stringify(word)}\n`);
const waiting = (answer: ServerResponse): void =>
  say(answer, { event: "waiting", session: "s", monotonicNs: toMonotonicNs(performance.now()) });
const granted = (answer: ServerResponse, token: number, forMs: number): void =>
  say(answer, { event: "granted", token, untilMs: forMs, monotonicNs: toMonotonicNs(performance.now() + forMs) });

async function held(forMs = FAR_MS) {
  const acquiring = access.mutex("a/b").acquire();
  const answer = await answerAt(1);
  waiting(answer);
  granted(answer, 3, forMs);
  return { grant: await acquiring, answer };
}

const lossOf = ({ signal }: Tenure): Promise<unknown> =>
  vi.waitUntil(() => signal.aborted && (signal.reason as unknown), PATIENCE);

describe("a lock", () => {
  test("is held up to its deadline, which moves, and given back with a word", async () => {
    const { grant, answer } = await held(10_000);
    expect(asked).toEqual(["POST /locks/a%2Fb"]);
    expect(bodies).toEqual([{ silenceMs: 5_000 }]);
    expect(grant).toMatchObject({ token: 3, isHeld: true });
    const deadline = grant.deadline as number;
    say(answer, { event: "certain", untilMs: 1, monotonicNs: toMonotonicNs(deadline + 500) });
    await vi.waitUntil(() => (grant.deadline as number) > deadline + 400, PATIENCE);
    await grant.release();
    expect(asked.at(-1)).toBe("DELETE /sessions/s");
    expect(grant.signal.reason).toMatchObject({ code: "released" });
  });

  test("is lost when its deadline has passed, whatever the member does", async () => {
    const { grant } = await held(50);
    expect(await lossOf(grant)).toMatchObject({ code: "grant-lost" });
  });

  test("is lost when the member says so", async () => {
    const { grant, answer } = await held();
    say(answer, { event: "lost" });
    expect(await lossOf(grant)).toMatchObject({ code: "grant-lost" });
  });

  test("is lost when the connection ends", async () => {
    const { grant, answer } = await held();
    answer.destroy();
    expect(await lossOf(grant)).toMatchObject({ code: "grant-lost" });
  });

  test("is lost when the member says what nobody understands", async () => {
    const { grant, answer } = await held();
    say(answer, { event: "sold" });
    expect(await lossOf(grant)).toMatchObject({ code: "grant-lost" });
  });

  test("is kept by saying that this process lives", async () => {
    const { grant } = await held();
    await vi.waitUntil(() => asked.includes("PUT /sessions/s"), PATIENCE);
    await grant.release();
  });
});

describe("who waits", () => {
  const outcome = (options = {}) =>
    access
      .mutex("x")
      .acquire(options)
      .catch((error: unknown) => error);

  test("is told when the member is on another machine", async () => {
    const failing = outcome();
    const answer = await answerAt(1);
    say(answer, { event: "waiting", session: "s", monotonicNs: "1" });
    granted(answer, 1, FAR_MS); // Which counts no more.
    expect(await failing).toMatchObject({
      code: "different-clocks",
      message: expect.stringContaining("it has to run on this machine") as string,
    });
  });

  test("ends after its time, and when it is aborted", async () => {
    const error = { code: "acquire-timeout", message: 'the lock "x" was not acquired within 20 ms' };
    expect(await outcome({ timeoutMs: 20 })).toMatchObject(error);
    const controller = new AbortController();
    const before = answers.length; // The first may have ended before it was asked.
    const failing = outcome({ signal: controller.signal });
    await answerAt(before + 1);
    controller.abort();
    expect(await failing).toMatchObject({ code: "acquire-aborted" });
    expect(await outcome({ signal: controller.signal })).toMatchObject({ code: "acquire-aborted" });
  });

  test("is told what the member says", async () => {
    const failing = outcome();
    const answer = await answerAt(1);
    waiting(answer);
    say(answer, { event: "refused", code: "member-left", message: "it has left" });
    expect(await failing).toMatchObject({ code: "member-left", phase: "never-acquired", message: "it has left" });
  });

  test("is told that the member has gone", async () => {
    const failing = outcome();
    waiting(await answerAt(1));
    answers[0]?.destroy();
    expect(await failing).toMatchObject({ code: "no-answer" });
  });

  test.each(["", "..", "a\nb"])("is told that there is no such name as %j", async (name) => {
    const failing = access.mutex(name).acquire();
    await expect(failing).rejects.toMatchObject({ code: "bad-name" });
    expect(asked).toEqual([]);
  });

  test.each([
    [400, "UsageError", "in the member's words"],
    [404, "UsageError", "serves no locks and elections"],
    [503, "EnvironmentError", "in the member's words"],
  ])("is told what is wrong: %i", async (code, name, words) => {
    status = code;
    const error = (await outcome()) as Error;
    expect(error.constructor.name).toBe(name);
    expect(error.message).toContain(words);
  });
});

describe("a campaign", () => {
  test("goes on after a loss, once the work has ended, and ends with work that ends while it leads", async () => {
    const tokens: (number | null)[] = [];
    const leading = access.election("x").lead(async (leadership) => {
      tokens.push(leadership.token);
      if (tokens.length === 1) await lossOf(leadership);
      return `done under ${leadership.token}`;
    });
    const first = await answerAt(1);
    waiting(first);
    granted(first, 1, FAR_MS);
    say(first, { event: "lost" });
    const second = await answerAt(2);
    waiting(second);
    granted(second, 2, FAR_MS);
    expect(await leading).toBe("done under 2");
    expect(asked).toEqual(["POST", "DELETE", "POST", "DELETE"].map((verb, at) => `${verb} ${PLACES[at % 2]}`));
  });

  test("hands on what the work throws, and steps down", async () => {
    const leading = access
      .election("x")
      .lead(() => Promise.reject(new Error("out of paper")))
      .catch((error: unknown) => (error as Error).message);
    const answer = await answerAt(1);
    waiting(answer);
    granted(answer, 1, FAR_MS);
    expect(await leading).toBe("out of paper");
    expect(asked.at(-1)).toBe("DELETE /sessions/s");
  });
});

const PLACES = ["/elections/x", "/sessions/s"];
