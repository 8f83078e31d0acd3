/** Checks the health in a member's admin pages, and which pages other machines may see. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type Agent, get } from "node:https";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { expect, test, vi } from "vitest";
import { authority } from "../../../test/network/certificates.ts";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { cluster } from "../../../test/network/joined.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { Member } from "./api.ts";

const closing = closedAfterEach();

const answer = async (member: Member, page: string, init: RequestInit = {}) => {
  const response = await fetch(`${(member.admin as string).replace("0.0.0.0", "127.0.0.1")}${page}`, init);
  return { status: response.status, body: await response.text() };
};

test("is healthy as soon as it runs, and ready once it reaches a majority and knows the leader of the log", async () => {
  const it = closing(await cluster(2));
  const first = await it.start(1, { admin: "127.0.0.1:0" });
  expect(await answer(first, "/healthz")).toMatchObject({ status: 200 });
  expect(await answer(first, "/readyz")).toEqual({ status: 503, body: '{"ready":false,"missing":"no-majority"}' });
  const second = await it.start(2);
  await first.ready();
  expect(await answer(first, "/readyz")).toEqual({ status: 200, body: '{"ready":true,"missing":null}' });
  await second.leave();
  await vi.waitFor(async () => expect(await answer(first, "/readyz")).toMatchObject({ status: 503 }), PATIENCE);
  expect(await answer(first, "/healthz")).toMatchObject({ status: 200 });
});

const acts = [
  ["POST", "/locks/x"],
  ["POST", "/elections/x"],
  ["PUT", "/sessions/x"],
  ["DELETE", "/sessions/x"],
  ["POST", "/command"],
  ["PUT", "/faults"],
  ["GET", "/faults"],
  ["GET", "/trace"],
  ["POST", "/status"],
] as const;

test.each([
  { address: "0.0.0.0:0", tls: "off" },
  { address: "127.0.0.1:0", readOnly: true },
] as const)("pages of %j are read-only", async (admin) => {
  const member = await closing(await cluster(1)).start(1, { admin, faultInjector: true });
  for (const page of ["/status", "/metrics", "/healthz"])
    expect(await answer(member, page)).toMatchObject({ status: 200 });
  for (const [method, page] of acts) {
    const body = method === "GET" ? {} : { body: "{}", headers: { "content-type": "application/json" } };
    expect(await answer(member, page, { method, ...body })).toMatchObject({ status: 404 });
  }
  expect(member.status().instances).toEqual([]);
});

test.each([
  [
    "0.0.0.0:0",
    'expected admin of join() to be a loopback address, got "0.0.0.0:0": to serve reports to a network, set admin',
  ],
  [{ address: "0.0.0.0:0" }, "expected admin.address of join() to be a loopback address"],
  [
    { address: "0.0.0.0:0", tls: "off", readOnly: false },
    "expected admin.readOnly of join() to be true or absent, got false",
  ],
  [{ address: "127.0.0.1:0", tls: { cert: "x" } }, "expected admin.tls.key of join() to be a non-empty string"],
  [{ adress: "127.0.0.1:0" }, 'among address, tls, readOnly, got "adress"; did you mean address?'],
])("rejects admin: %j", async (admin, why) => {
  await expect(closing(await cluster(1)).start(1, { admin: admin as never })).rejects.toThrow(why);
});

test("over TLS, callers and the member authenticate each other by certificates", async () => {
  const ca = await authority("orders");
  const folder = mkdtempSync(path(tmpdir(), "coterie-admin-"));
  const [own, caller] = [await ca.issue("node-1"), await ca.issue("prometheus")];
  for (const [name, text] of Object.entries({ "ca.pem": ca.cert, "1.pem": own.cert, "1.key": own.key }))
    writeFileSync(path(folder, name), text);
  const tls = { ca: path(folder, "ca.pem"), cert: path(folder, "{id}.pem"), key: path(folder, "{id}.key") };
  const member = await closing(await cluster(1)).start(1, { admin: { address: "0.0.0.0:0", tls } });
  expect(member.admin).toMatch(/^https:/);
  const { port } = new URL(member.admin as string);
  const asked = (credentials: object): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const options = { port, path: "/healthz", ca: ca.cert, checkServerIdentity: () => undefined, ...credentials };
      get({ host: "127.0.0.1", agent: false as unknown as Agent, ...options }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).on("error", reject);
    });
  expect(await asked(caller)).toBe(200);
  await expect(asked({})).rejects.toThrow();
  rmSync(folder, { recursive: true });
});
