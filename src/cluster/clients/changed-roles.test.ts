/** Checks that a running member rereads the roles file. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { expect, test, vi } from "vitest";
import { breakingProxy } from "../../../test/network/breaking-proxy.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { memberWithClients, writeRoles } from "../../../test/network/member-with-clients.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { connect } from "../../client/node.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import { realPlatform } from "../../runtime/platform/real.ts";

/** Runs timers of 30 s immediately. */
const hurried: Platform = {
  ...realPlatform,
  timers: { ...realPlatform.timers, every: (ms, run) => realPlatform.timers.every(ms === 30_000 ? 20 : ms, run) },
};

test("disconnects a client with a replaced token, and keeps one with a valid token", async () => {
  const folder = mkdtempSync(path(tmpdir(), "coterie-roles-"));
  const roles = writeRoles(path(folder, "roles.json"), { old: "write", other: "write" });
  const warn = vi.fn();
  const log = { info() {}, warn, error: warn };
  const { member, url, folder: data } = await memberWithClients({ roles }, { log }, hurried);
  const [leaked, other] = await Promise.all(["old", "other"].map((token) => connect({ endpoints: [url], token })));
  const watch = await fetch(`${url}/v1/maps/m/watch`, { headers: { authorization: "Bearer old" } });
  const watching = watch.text().then(
    () => "ended",
    () => "cut off",
  );

  writeFileSync(roles, "{");
  await vi.waitFor(
    () => expect(warn.mock.calls.flat().join()).toContain("the previous roles remain in effect"),
    PATIENCE,
  );
  await leaked?.map("m").put("k", 1);

  writeRoles(roles, { new: "write", other: "write" });
  await vi.waitFor(() => expect(leaked?.signal.reason).toMatchObject({ code: "forbidden" }), PATIENCE);
  expect(await watching).toBe("cut off");
  expect((await fetch(`${url}/v1/status`, { headers: { authorization: "Bearer old" } })).status).toBe(401);
  const renewed = await connect({ endpoints: [url], token: "new" });
  expect(await renewed.map("m").get("k")).toBe(1);
  expect(other?.status().moves).toBe(0);
  await Promise.all([renewed.close(), other?.close(), leaked?.close()]);
  await member.leave();
  for (const each of [folder, data]) rmSync(each, { recursive: true, force: true });
});

test("a client whose role becomes read continues as a reader, and its locks are released", async () => {
  const folder = mkdtempSync(path(tmpdir(), "coterie-roles-"));
  const roles = writeRoles(path(folder, "roles.json"), { token: "write", other: "write" });
  const { member, url, folder: data } = await memberWithClients({ roles }, {}, hurried);
  const connected = (token: string) => connect({ endpoints: [url], token });
  const [client, other] = [await connected("token"), await connected("other")];
  const grant = await client.mutex("held").acquire();
  const theirs = await other.mutex("theirs").acquire();
  const waiting = client
    .mutex("theirs")
    .acquire()
    .catch((error: unknown) => error);
  const told = client.map("m").watch().next();

  writeRoles(roles, { token: "read", other: "write" });
  await vi.waitFor(() => expect(client.status()).toMatchObject({ role: "read", session: null }), PATIENCE);
  expect(grant.signal.reason).toMatchObject({ code: "grant-lost" });
  const refusal = { code: "forbidden", phase: "never-sent" };
  expect(await waiting).toMatchObject(refusal);
  await expect(client.map("m").put("k", 1)).rejects.toMatchObject(refusal);
  await other.map("m").put("k", 2);
  expect(await told).toMatchObject({ value: { key: "k", value: 2 } });
  expect(await client.map("m").get("k")).toBe(2);
  await (await other.mutex("held").acquire()).release();

  writeRoles(roles, { token: "write", other: "write" });
  await vi.waitFor(() => expect(client.status().role).toBe("write"), PATIENCE);
  await client.map("m").put("k", 3);
  await (await client.mutex("held").acquire()).release();
  expect(client.signal.aborted).toBe(false);
  await theirs.release();
  await Promise.all([client.close(), other.close()]);
  await member.leave();
  for (const each of [folder, data]) rmSync(each, { recursive: true, force: true });
});

test("a pending change whose client may no longer write is reported as uncertain", async () => {
  const folder = mkdtempSync(path(tmpdir(), "coterie-roles-"));
  const roles = writeRoles(path(folder, "roles.json"), { token: "write" });
  const { member, url, folder: data } = await memberWithClients({ roles }, {}, hurried);
  const [port] = await freePorts(1);
  const proxy = await breakingProxy(port as number, Number(new URL(url).port));
  const client = await connect({ endpoints: [`http://127.0.0.1:${port}`], token: "token", discover: false });
  const direct = await connect({ endpoints: [url], token: "token" });
  await client.map("m").put("k", 1);

  proxy.pause(true);
  const late = client
    .map("m")
    .put("k", 2, { timeoutMs: 60_000 })
    .catch((error: unknown) => error);
  writeRoles(roles, { token: "read" });
  await vi.waitFor(() => expect(direct.status().role).toBe("read"), PATIENCE);
  proxy.pause(false);
  expect(await late).toMatchObject({ code: "forbidden", phase: "uncertain" });
  expect(await client.map("m").get("k")).toBe(1);
  await Promise.all([client.close(), direct.close()]);
  await Promise.all([proxy.close(), member.leave()]);
  for (const each of [folder, data]) rmSync(each, { recursive: true, force: true });
});
