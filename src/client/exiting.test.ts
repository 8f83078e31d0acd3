/**
 * Checks a client whose process exits without closing it. Its locks are released at once, unless the process was
 * killed.
 */

import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { memberWithClients } from "../../test/network/member-with-clients.ts";
import { PATIENCE } from "../../test/patience.ts";
import { ServiceHost } from "../cluster/services/state/service-host.ts";
import { simulate } from "../testing/index.ts";
import { exitOf } from "./client.ts";

const script = fileURLToPath(new URL("../../test/network/exiting-client.ts", import.meta.url));
/** A session lasts 3 s after the client's last message. */
const SESSION_MS = 3_000;

async function freeAfterMs(exits: boolean): Promise<number> {
  const world = simulate({ members: 3, seed: 1 });
  let took = Number.NaN;
  await world.run(async () => {
    const client = await world.connect({ machine: 1_007 });
    const lock = await client.mutex("invoice").acquire();
    const waiting = world.member(1).mutex("invoice").acquire();
    await world.sleep(1_000);
    const at = world.now();
    if (exits) {
      exitOf(client);
      expect(lock.isHeld).toBe(false);
      await expect(client.map("m").get("a")).rejects.toMatchObject({ code: "client-closed" });
      await world.sleep(1); // The system still sends the buffered bytes.
    }
    world.kill(1_007);
    expect((await waiting).token).toBeGreaterThan(lock.token);
    took = world.now() - at;
  });
  return took;
}

test("releases a lock at once when its client's process exits, and after the session when it is killed", async () => {
  expect(await freeAfterMs(true)).toBeLessThan(100);
  expect(await freeAfterMs(false)).toBeGreaterThan(SESSION_MS - 1_000);
});

test("closes the session of a process that calls process.exit() with its last bytes", async () => {
  const { member, url, folder } = await memberWithClients();
  const proposed = vi.spyOn(ServiceHost.prototype, "propose");
  await promisify(execFile)(process.execPath, ["--import", "tsx", script, url]);
  await vi.waitUntil(
    () => proposed.mock.calls.some(([{ operation }]) => operation.includes('"type":"close"')),
    PATIENCE,
  );
  proposed.mockRestore();
  await (await member.mutex("invoice").acquire()).release();
  await member.leave();
  rmSync(folder, { recursive: true, force: true });
});
