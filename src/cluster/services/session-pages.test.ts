/** Checks a member's pages for locks and elections, over HTTP. */

import { type IncomingMessage, request } from "node:http";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { cluster } from "../../../test/network/joined.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { exchange } from "../http-exchange.ts";
import { eachLine } from "../local/lines.ts";
import type { Member } from "./api.ts";
import type { SessionWord } from "./session-words.ts";
import type { Timing } from "./timing.ts";

const closing = closedAfterEach();
const json = { "content-type": "application/json" };

let member: Member;
const open: IncomingMessage[] = [];
/** `patient` members keep their locks even during a pause of one second. */
async function begin(timing: Timing = "default"): Promise<void> {
  member = await closing(await cluster(1, { timing })).start(1, { admin: "127.0.0.1:0" });
}
beforeEach(() => begin());
afterEach(() => {
  for (const answer of open.splice(0)) answer.destroy();
});

/** Sends a request, and returns the answer as soon as its headers have arrived. */
function post(path: string, body = "{}", headers: Record<string, string> = json): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = request(`${member.admin}${path}`, { method: "POST", headers, agent: false }, (answer) => {
      open.push(answer.on("error", () => {}));
      resolve(answer);
    });
    call.on("error", reject).end(body);
  });
}

async function session(path: string, wish: object = {}) {
  const answer = await post(path, JSON.stringify(wish));
  const words: SessionWord[] = [];
  eachLine(answer, 1_000, (line) => words.push(JSON.parse(line) as SessionWord));
  const heard = (event: SessionWord["event"]) =>
    vi.waitUntil(() => words.find((word) => word.event === event), PATIENCE);
  const id = ((await heard("waiting")) as { session: string }).session;
  return { answer, heard, url: `${member.admin}/sessions/${id}` };
}

const instance = () => member.status().instances[0];

describe("a session", () => {
  test("reports its lock and every confirmation, and releases it", async () => {
    await begin("patient");
    const { heard, url } = await session("/locks/orders%2F%C3%A4%201");
    expect(await heard("granted")).toMatchObject({ token: expect.any(Number) as number });
    await heard("certain");
    expect(instance()).toMatchObject({ kind: "mutex", name: "orders/ä 1", isHeld: true });
    expect(await exchange(url, { method: "PUT", timeoutMs: 60_000 })).toEqual({ status: 200, body: {} });
    expect(await exchange(url, { method: "DELETE", timeoutMs: 60_000 })).toEqual({ status: 200, body: {} });
    await heard("released");
    expect(instance()).toBe(undefined); // No caller waits for it or holds it.
    expect((await exchange(url, { method: "PUT", timeoutMs: 60_000 })).status).toBe(400);
  });

  test("ends with its connection: the next waiter acquires the lock", async () => {
    const first = await session("/locks/x");
    const { token } = (await first.heard("granted")) as { token: number };
    const second = await session("/locks/x");
    first.answer.destroy();
    expect(((await second.heard("granted")) as { token: number }).token).toBeGreaterThan(token);
  });

  test("that waits ends with its connection", async () => {
    await begin("patient");
    const grant = await member.mutex("x").acquire();
    const { answer } = await session("/locks/x");
    expect(instance()?.waiting).toBe(1);
    answer.destroy();
    await vi.waitUntil(() => instance()?.waiting === 0, PATIENCE);
    await grant.release();
  });

  test("that ends at once leaves nothing behind", async () => {
    const opening = Array.from({ length: 200 }, async (_, at) => {
      const call = request(`${member.admin}/locks/x`, { method: "POST", headers: json, agent: false });
      call.on("error", () => {}).end("{}");
      setTimeout(() => call.destroy(), at / 8);
      await new Promise((resolve) => call.on("close", resolve));
    });
    await Promise.all(opening);
    const { heard } = await session("/locks/x");
    await heard("granted");
    await vi.waitUntil(() => instance()?.waiting === 0, PATIENCE);
  });

  test("leads, and steps down when it ends", async () => {
    await begin("patient");
    const { heard, url } = await session("/elections/x");
    expect(await heard("granted")).toMatchObject({ token: expect.any(Number) as number });
    expect(member.election("x").leader).toBe(1);
    await exchange(url, { method: "DELETE", timeoutMs: 60_000 });
    expect(member.election("x").leader).toBeNull();
  });

  test("is notified when the member leaves, which waits for it", async () => {
    const { heard, url } = await session("/locks/x");
    await heard("granted");
    const leaving = member.leave();
    await heard("lost");
    // The server may close at the same time.
    await exchange(url, { method: "DELETE", timeoutMs: 60_000 }).catch(() => {});
    await leaving;
  });
});

test.each<[string, string, Record<string, string>, number, string]>([
  ["/locks/x", "{", json, 400, "expected the body to be valid JSON"],
  ["/locks/x", "{}", {}, 400, "expected the content type to be application/json"],
  ["/locks/x", '{"color":"red"}', json, 400, "color"],
  ["/elections/x", '{"timeoutMs":5}', json, 400, "to be absent for an election"],
  ["/locks/LONG", "{}", json, 400, "at most 128 bytes long"],
  ["/locks/a%00b", "{}", json, 400, "free of control characters"],
  ["/locks/x", '"LONG"', json, 413, "expected a body of at most 65536 bytes"],
  [
    "/locks/",
    "{}",
    json,
    404,
    "no such page; known pages: /healthz, /readyz, /status, /metrics, /trace, /command, /locks/NAME",
  ],
  ["/locks/x/y", "{}", json, 404, "no such page"],
  ["/sessions/x", "{}", json, 404, "no such page"],
  ["/locks/x", "{}", { ...json, origin: "http://example.com" }, 403, "reject requests from web pages"],
])("POST %s with %s is rejected", async (path, body, headers, status, why) => {
  const answer = await post(path.replace("LONG", "x".repeat(129)), body.replace("LONG", "x".repeat(70_000)), headers);
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) text += piece;
  expect({ status: answer.statusCode, text }).toMatchObject({ status, text: expect.stringContaining(why) as string });
  expect(member.status().instances).toEqual([]);
});

test("opens at most 128 sessions, and counts the rejected ones", async () => {
  const ofEnded = 20; // On a busy machine some lose their lock and end.
  const answers = await Promise.all(Array.from({ length: 128 + ofEnded }, () => post("/locks/x")));
  const codes = answers.map(({ statusCode }) => statusCode);
  const accepted = codes.filter((code) => code === 200).length;
  expect(accepted).toBeGreaterThanOrEqual(128);
  expect(codes.filter((code) => code === 503)).toHaveLength(128 + ofEnded - accepted);
  expect(accepted).toBeLessThan(128 + ofEnded);
  const metrics = await (await fetch(`${member.admin}/metrics`)).text();
  expect(metrics).toContain(`coterie_refused_total{reason="too-many-sessions"} ${codes.length - accepted}\n`);
});
