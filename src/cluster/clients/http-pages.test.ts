/** Checks errors of a member's HTTP API that the caller, the connection or the cluster causes. */

import { rmSync } from "node:fs";
import { request } from "node:http";
import { join as path } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { freePorts } from "../../../test/network/free-ports.ts";
import { memberWithClients, type Serving, writeRoles } from "../../../test/network/member-with-clients.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { JoinedMember } from "../services/joined-member.ts";

const JSON_BODY = { "content-type": "application/json" };
let serving: Serving;

beforeAll(async () => {
  serving = await memberWithClients();
});
afterAll(() => done(serving));

async function done({ member, folder }: Serving): Promise<void> {
  await member.leave();
  rmSync(folder, { recursive: true, force: true });
}

async function ask(page: string, init: RequestInit = {}, { url } = serving) {
  const answer = await fetch(url + page, { ...init, headers: { ...JSON_BODY, ...init.headers } });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

test("reports a lost majority in the status, without waiting for one", async () => {
  const [one, two, three] = await freePorts(3);
  const members = { 1: `127.0.0.1:${one}`, 2: `127.0.0.1:${two}`, 3: `127.0.0.1:${three}` };
  const alone = await memberWithClients({}, { members });
  expect(await ask("/v1/status", {}, alone)).toMatchObject({
    status: 200,
    body: { member: 1, leader: null, revision: null },
  });
  await done(alone);
});

test("limits the wait of a request to ten minutes, also in its URL", async () => {
  expect(await ask("/v1/maps/m/keys/k?timeoutMs=600001")).toMatchObject({
    status: 400,
    body: { error: 'expected timeoutMs to be milliseconds, at most 600000, which is 10 minutes, got "600001"' },
  });
});

test("drops a request when its caller has disconnected", async () => {
  const { cluster, state } = serving.member as JoinedMember;
  await cluster.add({ id: 2, address: "127.0.0.1:1" }); // The member never starts, so the change stays pending.
  const left = new AbortController();
  const body = JSON.stringify({ timeoutMs: 600_000 });
  const call = { method: "POST", body, headers: JSON_BODY, signal: left.signal };
  const before = state.status?.waiting ?? 0;
  const asked = fetch(`${serving.url}/v1/members/settled`, call).catch(() => "gone");
  await vi.waitFor(() => expect(state.status?.waiting).toBe(before + 1), PATIENCE);
  left.abort();
  expect(await asked).toBe("gone");
  await vi.waitFor(() => expect(state.status?.waiting).toBe(before), PATIENCE);
  await cluster.remove(2);
});

describe("a watch", () => {
  const put = (map: string, value: number) =>
    ask(`/v1/maps/${map}/keys/k`, { method: "PUT", body: JSON.stringify({ value }) });

  /**
   * Reads the values of a watch until its output matches `wanted`. Returns them with the last event id, which an
   * EventSource sends when it reconnects.
   */
  async function heard(page: string, wanted: RegExp, last?: string): Promise<{ values: number[]; id: string }> {
    const left = new AbortController();
    const headers = last === undefined ? {} : { "last-event-id": last };
    const answer = await fetch(serving.url + page, { headers, signal: left.signal });
    let text = "";
    for await (const piece of answer.body as ReadableStream<Uint8Array>) {
      text += Buffer.from(piece).toString(); // Every character is one byte.
      if (wanted.test(text)) break;
    }
    left.abort();
    const values = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => (JSON.parse(data ?? "") as Told).value);
    return { values, id: [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? "" };
  }
  interface Told {
    readonly value: number;
  }

  test("that is cut off before its first event resumes without gaps or repetitions", async () => {
    await put("gap", 0);
    const first = await heard("/v1/maps/gap/watch", /^id: .*\n\n/m);
    expect(first.values).toEqual([]);
    await put("gap", 1);
    await put("gap", 2);
    const second = await heard("/v1/maps/gap/watch", /"value":2.*\nid: .*\n\n/, first.id);
    expect(second.values).toEqual([1, 2]);
    const third = await heard("/v1/maps/gap/watch", /^id: .*\n\n/m, second.id);
    expect(third).toEqual({ values: [], id: second.id });
  });

  test("with a start revision sends it before the first event", async () => {
    const { body } = await put("from", 1);
    const { revision } = body as { revision: number };
    const first = await heard(`/v1/maps/from/watch?after=${revision}`, /^id: .*\n\n/m);
    await put("from", 2);
    const second = await heard("/v1/maps/from/watch", /"value":2/, first.id);
    expect(first.id).toBe(`${revision + 1}.0`);
    expect(second.values).toEqual([2]);
  });

  test.each([
    ["afer=0", "expected afer to be absent, got 0"],
    ["after=-1", 'expected after to be a whole number of 0 or more, got "-1"'],
    ["key=a&prefix=b", 'expected prefix to be absent when key is set, got "b"'],
  ])("is rejected with invalid parameters: %s", async (query, error) => {
    const { status, body } = await ask(`/v1/maps/m/watch?${query}`);
    expect(status).toBe(400);
    expect(body.error).toContain(error.replace(/got 0$/, ""));
  });
});

test.each(["5", "5.", "a.1", "5.1.1"])("a watch rejects an invalid event id: %s", async (id) => {
  expect(await ask("/v1/maps/m/watch", { headers: { "last-event-id": id } })).toMatchObject({
    status: 400,
    body: { error: `expected Last-Event-ID to be the id of an event, such as 12.1, got "${id}"` },
  });
});

test("a web page may send the last id of its watch", async () => {
  const origins = ["https://console.example"];
  const open = await memberWithClients({ origins });
  const { headers } = await fetch(`${open.url}/v1/maps/m/watch`, {
    method: "OPTIONS",
    headers: { origin: "https://console.example", "access-control-request-headers": "last-event-id" },
  });
  expect(headers.get("access-control-allow-headers")).toContain("last-event-id");
  await done(open);
});

describe("errors", () => {
  test("name the expected value", async () => {
    const put = await ask("/v1/maps/m/keys/k", { method: "PUT", body: "{}" });
    expect(put).toMatchObject({ status: 400, body: { error: "expected value to be JSON data, got undefined" } });
    const body = '{"then":[{"put":{"map":"m","key":"k"}}]}';
    expect((await ask("/v1/transactions", { method: "POST", body })).status).toBe(400);
  });

  test.each([
    ["9007199254740993", "9007199254740993"],
    ['{"id":[-12345678901234567891]}', "-12345678901234567891"],
    [`[${"9".repeat(400)}]`, "9".repeat(40)],
    ['["\\\\",10000000000000001]', "10000000000000001"],
  ])("reject a whole number that would be rounded: %s", async (value, rounded) => {
    const body = `{"value":${value}}`;
    expect(await ask("/v1/maps/m/keys/k", { method: "PUT", body })).toMatchObject({
      status: 400,
      body: { error: `expected integers that a double can represent, got ${rounded}: send it as a string` },
    });
  });

  test.each([
    ["9007199254740992", 200],
    ["1234567890123456789.5", 200],
    ["0.12345678901234567", 200], // The decimals are not parsed as a separate number.
    ["1e-12345678901234567", 200],
    ['"9007199254740993"', 200],
    ['"\\"9007199254740993"', 200],
    ["1e400", 400], // It would become Infinity, which is not a JSON value.
    [`${"1".repeat(500_000)}.5`, 400],
  ])("accept other numbers and texts, but not infinite numbers: %s", async (value, status) => {
    const body = `{"value":${value}}`;
    expect((await ask("/v1/maps/m/keys/k", { method: "PUT", body })).status).toBe(status);
  });

  test("reject a body that is not UTF-8", async () => {
    const body = Buffer.from('{"value":"\xff\xfe"}', "latin1");
    expect(await ask("/v1/maps/m/keys/k", { method: "PUT", body })).toMatchObject({
      status: 400,
      body: { error: "expected the body to be valid UTF-8" },
    });
  });

  test.each([
    ["/v1/maps/m/keys/%FF", "expected percent-encoded UTF-8 in the URL, got %FF"],
    ["/v1/maps/m?prefix=%FF", "expected percent-encoded UTF-8 in the URL, got %FF"],
    ["/v1/maps/%2e/watch", 'expected a name other than "." or ".."'],
    ["/v1/maps/m/keys/%2E.", 'expected a name other than "." or ".."'],
    ["/v1/maps/m/keys/..", 'expected a name other than "." or ".."'],
  ])("reject an address that would be parsed differently: %s", async (page, error) => {
    // `fetch` would resolve `.` and `..` itself.
    const text = await new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(serving.url);
      request({ hostname, port, path: page }, (answer) => {
        let all = "";
        answer.on("data", (piece) => (all += piece)).on("end", () => resolve(`${answer.statusCode} ${all}`));
      })
        .on("error", reject)
        .end();
    });
    expect(text).toMatch(/^400 /);
    expect(JSON.parse(text.slice(4)).error).toContain(error);
  });

  test("describe the expected form", async () => {
    const add = (body: object) => ask("/v1/counters/c", { method: "POST", body: JSON.stringify(body) });
    expect((await add({ add: 1.5 })).body.error).toBe("expected add to be a whole number, got 1.5");
    expect((await add({ add: 1, sett: 2 })).body.error).toBe("expected sett to be absent, got 2");
    expect((await add({})).body.error).toContain("expected the body to be an object with add or set");
    expect((await add({ add: 1, set: 1 })).body.error).toContain("expected the body to be an object with add or set");
    const body = '{"then":[{"put":{"map":"m","key":"k"}}]}';
    expect((await ask("/v1/transactions", { method: "POST", body })).body.error).toBe(
      "expected then.0.put.value to be JSON data, got undefined",
    );
  });

  test("reject an unknown field, and a body that is not an object", async () => {
    const lock = (body: string) => ask("/v1/locks/l", { method: "POST", body });
    expect((await lock('{"algorithm":"bully"}')).body.error).toContain("expected algorithm to be absent");
    expect((await lock("[]")).body.error).toContain("expected the body to be an object, got []");
    expect((await lock("null")).body.error).toContain("expected the body to be an object, got null");
  });

  test("distinguish an unknown page from an absent key", async () => {
    expect(await ask("/v1/nothing")).toMatchObject({ status: 404, body: { code: "no-page" } });
    expect(await ask("/v1/maps/m/keys/nothing")).toMatchObject({ status: 404, body: { code: "absent" } });
  });

  test("report an unknown page for any role, and accept any spelling of the token's scheme", async () => {
    const roles = writeRoles(path(serving.folder, "roles.json"), { read: "read" });
    const guarded = await memberWithClients({ roles });
    for (const scheme of ["Bearer", "bearer"]) {
      const init = { headers: { authorization: `${scheme} read` } };
      expect((await ask("/v1/nothing", init, guarded)).status).toBe(404);
      expect((await ask("/v1/status", init, guarded)).status).toBe(200);
      expect((await ask("/v1/locks/l", { method: "POST", body: "{}", ...init }, guarded)).status).toBe(403);
    }
    await done(guarded);
  });

  test("are described for every page, with the phases of calls", async () => {
    const { body } = await ask("/openapi.json");
    const paths = body.paths as Record<string, Record<string, { responses: Record<string, unknown> }>>;
    const statuses = (page: string, method: string) => Object.keys(paths[page]?.[method]?.responses ?? {}).map(Number);
    expect(statuses("/v1/counters/{counter}", "post")).toEqual(expect.arrayContaining([422, 507, 504]));
    expect(statuses("/v1/maps/{map}/keys/{key}", "get")).not.toContain(507);
    expect(statuses("/v1/members/{member}/leadership", "post")).toContain(404);
    for (const [page, method] of [
      ["/v1/maps/{map}/watch", "get"],
      ["/v1/locks/{lock}", "post"],
      ["/v1/elections/{election}", "post"],
      ["/v1/sessions/{session}", "put"],
      ["/v1/sessions/{session}", "delete"],
    ] as const)
      expect(statuses(page, method)).toEqual(expect.arrayContaining([200, 400, 401, 403, 503]));
    const named = JSON.stringify(paths["/v1/maps/{map}/watch"]);
    for (const field of ["prefix", "Last-Event-ID", '"phase"']) expect(named).toContain(field);
  });
});
