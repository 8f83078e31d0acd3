/**
 * Checks clients that connect over HTTP and WebSocket to members in this process: the curl commands of
 * docs/guide/http.md, roles, and rejections.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/client/node.ts";
import { type JoinOptions, join, type Member } from "../../src/index.ts";
import { freePorts } from "../network/free-ports.ts";

const folder = mkdtempSync(path(tmpdir(), "coterie-clients-"));
const members: Member[] = [];
let url = "";

async function member(more: Partial<JoinOptions>): Promise<Member> {
  const [own, clients] = await freePorts(2);
  const joined = await join({
    id: 1,
    members: { 1: `127.0.0.1:${own}` },
    dataDir: mkdtempSync(path(folder, "data-")),
    timing: "patient", // Only tests that intend it may lose a lock.
    clients: `127.0.0.1:${clients}`,
    ...more,
    ...(typeof more.clients === "object" ? { clients: { ...more.clients, listen: `127.0.0.1:${clients}` } } : {}),
  });
  members.push(joined);
  return joined;
}

beforeAll(async () => {
  url = (await member({})).clients as string;
});
afterAll(async () => {
  await Promise.all(members.map((each) => each.leave()));
  rmSync(folder, { recursive: true, force: true });
});

const ask = async (page: string, init: RequestInit = {}, base = url) => {
  const answer = await fetch(base + page, {
    ...init,
    headers: { "content-type": "application/json", ...init.headers },
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};

describe("over HTTP", () => {
  test("the commands of docs/guide/http.md work as the page promises", async () => {
    const page = readFileSync(new URL("../../docs/guide/http.md", import.meta.url), "utf8");
    const [, script = ""] = /^## With curl[\s\S]*?^```sh\n([\s\S]*?)^```/m.exec(page) ?? [];
    const commands = script.replaceAll("\\\n", " ").trim().split("\n");
    expect(commands).toHaveLength(9);
    const said: string[] = [];
    for (const command of commands) {
      const stdout = await saidBy(command.replace("--max-time 1 ", "")); // Lets every watch finish its output.
      said.push(stdout.replaceAll(/"revision":\d+/g, '"revision":R').replaceAll(/id: \d+/g, "id: R"));
    }
    const [put, got, created, range, counted, moved, watched = "", deleted, status] = said;
    expect(put).toBe('{"revision":R}');
    expect(got).toBe('{"key":"apples","value":3,"revision":R}');
    expect(created).toBe('{"revision":R}');
    expect(range).toBe('{"entries":[{"key":"apples","value":3,"revision":R}],"revision":R,"more":false}');
    expect(counted).toBe('{"value":1}');
    expect(moved).toBe('{"succeeded":true,"revision":R,"results":[{"key":"apples"}]}');
    expect(watched.match(/event: change\ndata: .*\nid: R\.1/g)).toHaveLength(3);
    expect(deleted).toBe('{"deleted":true}');
    expect(status).toMatch(/^{"member":1,"cluster":"coterie","leader":1,/);
  });

  test("every request of the description is answered, and none is missing", async () => {
    const { status, body } = await ask("/openapi.json");
    expect(status).toBe(200);
    const paths = body.paths as Record<string, Record<string, { operationId: string; requestBody?: object }>>;
    const all = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
    expect(all.toSorted()).toEqual(
      [
        "add",
        "addMember",
        "changeMembers",
        "count",
        "delete",
        "get",
        "keepAlive",
        "lead",
        "lock",
        "members",
        "moveMember",
        "promoteMember",
        "put",
        "range",
        "release",
        "removeMember",
        "settled",
        "snapshot",
        "status",
        "transaction",
        "transfer",
        "watch",
      ].toSorted(),
    );
    const bodyOfPut = paths["/v1/maps/{map}/keys/{key}"]?.put?.requestBody;
    expect(JSON.stringify(bodyOfPut)).toContain('"ifRevision"');
  });

  test("an impossible request is rejected in one sentence", async () => {
    const put = (body: unknown) => ask("/v1/maps/m/keys/k", { method: "PUT", body: JSON.stringify(body) });
    expect(await put({ value: 1, ifRevison: 0 })).toMatchObject({
      status: 400,
      body: { error: "expected ifRevison to be absent, got 0" },
    });
    expect((await put({ value: "x".repeat(1_048_575) })).status).toBe(413);
    expect((await put({ value: "x".repeat(2_200_000) })).body).toMatchObject({ code: "body-too-long" });
    expect((await ask("/v1/members/settled", { method: "POST", body: `"${"x".repeat(70_000)}"` })).status).toBe(413);
    expect((await put({ value: 1, ifRevision: 99 })).status).toBe(409);
    expect((await ask("/v1/maps/m/keys/none")).status).toBe(404);
    expect((await ask("/v1/nothing")).status).toBe(404);
    expect((await ask("/v1/maps/m/watch?after=x")).status).toBe(400);
    expect((await ask("/v1/counters/c", { method: "POST", body: '{"add":0.5}' })).status).toBe(400);
    const foreign = await ask("/v1/status", { headers: { origin: "https://evil.example" } });
    expect(foreign).toMatchObject({ status: 403, body: { code: "forbidden" } });
  });

  test("the largest value is put, read, watched and moved in a transaction, over HTTP and WebSocket", async () => {
    const value = "x".repeat(1_048_574);
    const largest = "/v1/maps/large/keys/a";
    const { body: put } = await ask(largest, { method: "PUT", body: JSON.stringify({ value }) });
    const client = await connect({ endpoints: [url] });
    const map = client.map<string>("large");
    const changes = map.watch({ after: put.revision as number });
    expect((await map.get("a")) === value).toBe(true);
    expect(await map.compareAndSet("a", put.revision as number, value.replace("x", "y"))).not.toBeNull();
    expect((await ask(largest)).body.value === value.replace("x", "y")).toBe(true);
    const change = await changes.next();
    expect(change.value.value === value.replace("x", "y")).toBe(true);
    const steps = [{ put: { map: "large", key: "b", value } }, { delete: { map: "large", key: "a" } }];
    const done = await ask("/v1/transactions", { method: "POST", body: `{"then":${JSON.stringify(steps)}}` });
    expect(done.body).toMatchObject({ succeeded: true });
    expect((await map.get("b")) === value).toBe(true);
    await map.delete("b");
    await client.close();
  });

  test("a lock is held for as long as the connection lasts, in one queue with clients", async () => {
    const client = await connect({ endpoints: [url] });
    const left = new AbortController();
    const held = await fetch(`${url}/v1/locks/both`, {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
      signal: left.signal,
    });
    const lines = held.body?.pipeThrough(new TextDecoderStream()).getReader() as ReadableStreamDefaultReader<string>;
    let text = "";
    while (!text.includes('"granted"')) text += (await lines.read()).value ?? "";
    await expect(client.mutex("both").acquire({ timeoutMs: 200 })).rejects.toMatchObject({ code: "acquire-timeout" });
    const { session } = JSON.parse(text.split("\n")[0] as string) as { session: string };
    expect((await ask(`/v1/sessions/${session}`, { method: "DELETE" })).status).toBe(200);
    const grant = await client.mutex("both").acquire();
    expect(grant.isHeld).toBe(true);
    left.abort();
    await client.close();
    expect(grant.signal.aborted).toBe(true);
  });
});

describe("roles", () => {
  const hash = (token: string): string => createHash("sha256").update(token).digest("hex");
  const roles = path(folder, "roles.json");

  test("determine permissions, with one sentence for each rejection", async () => {
    writeFileSync(
      roles,
      JSON.stringify({
        tokens: [
          { name: "reader", role: "read", sha256: hash("r") },
          { name: "writer", role: "write", sha256: hash("w") },
        ],
      }),
    );
    const base = (await member({ clients: { listen: "", roles } })).clients as string;
    const as = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });
    const write: RequestInit = { method: "PUT", body: '{"value":1}' };
    expect(await ask("/v1/status", {}, base)).toMatchObject({ status: 401, body: { code: "forbidden" } });
    expect((await ask("/v1/status", as("x"), base)).status).toBe(401);
    expect((await ask("/v1/status", as("r"), base)).status).toBe(200);
    expect(await ask("/v1/maps/m/keys/k", { ...write, ...as("r") }, base)).toMatchObject({
      status: 403,
      body: { error: "expected the role write for this request, got read" },
    });
    expect((await ask("/v1/maps/m/keys/k", { ...write, ...as("w") }, base)).status).toBe(200);
    expect((await ask("/v1/members", as("r"), base)).status).toBe(200);
    expect(await ask("/v1/members/1/removal", { method: "POST", body: "{}", ...as("w") }, base)).toMatchObject({
      status: 403,
      body: { error: "expected the role admin for this request, got write" },
    });
    expect((await ask("/v1/snapshot", as("w"), base)).status).toBe(403);

    await expect(connect({ endpoints: [base] })).rejects.toMatchObject({ code: "forbidden" });
    const reader = await connect({ endpoints: [base], token: "r" });
    expect(await reader.map("m").get("k")).toBe(1);
    for (const change of [
      () => reader.map("m").put("k", 2),
      () => reader.transaction((t) => t.get(reader.map("m"), "k")),
      () => reader.mutex("l").acquire(),
      () => reader.election("e").lead(() => {}),
      () => reader.election("e").lead(() => {}), // Allowed, since the first campaign has ended.
    ])
      await expect(change()).rejects.toMatchObject({ code: "forbidden", phase: "never-sent" });
    const writer = await connect({ endpoints: [base], token: "w" });
    expect(writer.status().role).toBe("write");
    await writer.map("m").put("k", 2);
    await Promise.all([reader.close(), writer.close()]);
  });

  test("must be valid, and are required off loopback", async () => {
    const [own] = await freePorts(1);
    const options = { id: 1, members: { 1: `127.0.0.1:${own}` }, dataDir: path(folder, "never") };
    writeFileSync(roles, '{"tokens":[{"name":"a","role":"root","sha256":"00"}]}');
    await expect(join({ ...options, clients: { listen: "127.0.0.1:0", roles } })).rejects.toMatchObject({
      code: "bad-roles",
      message: expect.stringContaining("expected tokens.0.role to be one of read, write, admin, got"),
    });
    await expect(join({ ...options, clients: "0.0.0.0:7300" })).rejects.toThrow(/loopback.*roles/);
    await expect(join({ ...options, clients: { listen: "0.0.0.0:7300", roles } })).rejects.toThrow(/tls/);
  });
});

test("a closed port and a forbidden message are reported", async () => {
  const [free] = await freePorts(1);
  const call = connect({ endpoints: [`http://127.0.0.1:${free}`], timeoutMs: 300 });
  await expect(call).rejects.toMatchObject({
    code: "no-endpoint",
    message: expect.stringContaining("the connection was refused: nothing listens at this address (ECONNREFUSED)"),
  });
  await expect(connect({ endpoints: ["tcp://127.0.0.1"] })).rejects.toThrow(
    /expected an endpoint of connect\(\) to be a URL/,
  );
  const client = await connect({ endpoints: [url] });
  await client.close();
  await client.close();
  await expect(client.map("m").get("a")).rejects.toThrow(/closed/);
});

/** Returns the output of this command. A watch ends after three changes. */
async function saidBy(command: string): Promise<string> {
  const env = { ...process.env, MEMBER: url };
  const child = spawn("bash", ["-c", `exec ${command}`], { env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const piece of child.stdout.setEncoding("utf8")) {
    text += piece;
    if ((text.match(/^data: .*\nid: .*\n/gm) ?? []).length >= 3) child.kill();
  }
  return text;
}
