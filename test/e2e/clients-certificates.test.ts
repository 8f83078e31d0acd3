/** Checks clients with certificates: their roles, and the errors for clients without a role. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../src/client/node.ts";
import { issue, makeAuthority, type Pair } from "../../src/cluster/certificates.ts";
import { exchange } from "../../src/cluster/http-exchange.ts";
import { join, type Member } from "../../src/index.ts";
import { freePorts } from "../network/free-ports.ts";

const DAY_MS = 86_400_000;
const folder = mkdtempSync(path(tmpdir(), "coterie-certified-"));
let member: Member;
let url = "";
let authority: Pair;

const named = (name: string, now = Date.now()): Promise<Pair> => issue(authority, [name], 2, now);
const tlsOf = ({ cert, key }: Pair) => ({ ca: authority.cert, cert, key });

beforeAll(async () => {
  authority = await makeAuthority("clients", Date.now());
  const own = await issue(authority, ["node-1", "127.0.0.1"], 2, Date.now());
  const file = (name: string, text: string): string => {
    writeFileSync(path(folder, name), text);
    return path(folder, name);
  };
  const tls = { ca: file("ca.pem", authority.cert), cert: file("own.pem", own.cert), key: file("own.key", own.key) };
  const certificates = [
    { name: "reader", role: "read" },
    { name: "writer", role: "write" },
    { name: "operator", role: "admin" },
  ];
  const [one, clients] = await freePorts(2);
  member = await join({
    id: 1,
    members: { 1: `127.0.0.1:${one}` },
    dataDir: path(folder, "data"),
    clients: { listen: `127.0.0.1:${clients}`, roles: file("roles.json", JSON.stringify({ certificates })), tls },
  });
  url = member.clients as string;
});
afterAll(async () => {
  await member.leave();
  rmSync(folder, { recursive: true, force: true });
});

const ask = (by: Pair, method: "GET" | "PUT", page: string, body?: object) =>
  exchange(url + page, { method, timeoutMs: 60_000, tls: tlsOf(by), ...(body && { body }) });

test("the name in a certificate determines the role of its owner, over WebSocket and HTTP", async () => {
  const [reader, writer, admin] = await Promise.all([named("reader"), named("writer"), named("operator")]);
  const writes = await connect({ endpoints: [url], tls: tlsOf(writer) });
  await writes.map("m").put("k", 1);
  const reads = await connect({ endpoints: [url], tls: tlsOf(reader) });
  expect(await reads.map("m").get("k")).toBe(1);
  await expect(reads.map("m").put("k", 2)).rejects.toMatchObject({ code: "forbidden", phase: "never-sent" });
  await Promise.all([writes.close(), reads.close()]);
  expect((await ask(reader, "PUT", "/v1/maps/m/keys/k", { value: 2 })).body).toEqual({
    error: "expected the role write for this request, got read",
    code: "forbidden",
  });
  expect((await ask(writer, "GET", "/v1/snapshot")).status).toBe(403);
  expect((await ask(admin, "PUT", "/v1/maps/m/keys/k", { value: 2 })).status).toBe(200);
});

test("a certificate that is unknown, expired or of another authority is rejected with the reason", async () => {
  const stranger = await named("stranger");
  const expired = await named("operator", Date.now() - 10 * DAY_MS);
  const foreign = await issue(await makeAuthority("others", Date.now()), ["operator"], 2, Date.now());
  const expected = [
    [stranger, "expected a valid token or certificate"],
    [expired, "certificate: the certificate was rejected (CERT_HAS_EXPIRED)"],
    [foreign, "certificate: the certificate was rejected ("],
  ] as const;
  for (const [pair, why] of expected) {
    const { status, body } = await ask(pair, "GET", "/v1/status");
    expect({ status, body }).toEqual({ status: 401, body: { error: expect.stringContaining(why), code: "forbidden" } });
    const refused = connect({ endpoints: [url], tls: tlsOf(pair) });
    await expect(refused).rejects.toMatchObject({ code: "forbidden", message: expect.stringContaining(why) });
  }
});
