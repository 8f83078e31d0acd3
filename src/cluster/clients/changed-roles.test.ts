/** The file of roles is read while a member runs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { expect, test, vi } from "vitest";
import { memberWithClients, writeRoles } from "../../../test/network/member-with-clients.ts";
import { connect } from "../../client/node.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import { realPlatform } from "../../runtime/platform/real.ts";

const PATIENCE = { timeout: 60_000, interval: 20 };

/** What happens every half minute happens at once. */
const hurried: Platform = {
  ...realPlatform,
  timers: { ...realPlatform.timers, every: (ms, run) => realPlatform.timers.every(ms === 30_000 ? 20 : ms, run) },
};

test("a token is changed while members run: who has the old one is turned out, who has a new one stays", async () => {
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
  await vi.waitFor(() => expect(warn.mock.calls.flat().join()).toContain("the roles of before go on"), PATIENCE);
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
