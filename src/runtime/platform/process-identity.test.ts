import { spawn } from "node:child_process";
import { once } from "node:events";
import { readlink } from "node:fs/promises";
import { describe, expect, test, vi } from "vitest";
import { fromPs, identityOf, ownIdentity, runs } from "./process-identity.ts";

vi.mock(import("node:fs/promises"), async (original) => {
  const real = await original();
  return { ...real, readlink: vi.fn(real.readlink) as unknown as typeof real.readlink };
});

const own = await ownIdentity();

describe.runIf(own !== null)("outside containers, a process", () => {
  const identity = own as string;

  test("runs until it ends, whether paused or not", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    const pid = child.pid as number;
    const childs = (await identityOf(pid)) as string;
    expect(await runs(pid, childs)).toBe(true);
    child.kill("SIGSTOP");
    expect(await runs(pid, childs)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await runs(pid, childs)).toBe(false);
  });

  test.runIf(process.platform === "linux")(
    "has no identity in a container, and counts as dead there only after a reboot",
    async () => {
      const [began] = identity.split("-");
      vi.mocked(readlink).mockResolvedValue("pid:[4026532000]");
      expect(await ownIdentity()).toBeNull();
      expect(await runs(2 ** 22, identity)).toBe(true);
      expect(await runs(process.pid, `${began}-00000000`)).toBe(false);
      vi.mocked(readlink).mockReset();
      expect(await runs(2 ** 22, identity)).toBe(false);
    },
  );

  test("is distinct from a later process with its pid, and from one before a reboot", async () => {
    const [began, boot] = identity.split("-");
    expect(await runs(process.pid, identity)).toBe(true);
    expect(await runs(process.pid, `${Number(began) - 100}-${boot}`)).toBe(false);
    expect(await runs(process.pid, `${began}-00000000`)).toBe(false);
  });

  test.runIf(process.platform === "linux")(
    "does not run once it has ended, even if its parent has not reaped it",
    async () => {
      // The shell becomes `sleep`, which never reaps the shell's child, so the child becomes a zombie.
      const parent = spawn("sh", ["-c", "sleep 0.2 & echo $!; exec sleep 60"]);
      const [line] = (await once(parent.stdout, "data")) as [Buffer];
      const pid = Number(String(line));
      const childs = (await identityOf(pid)) as string;
      while (await runs(pid, childs)) await new Promise((resolve) => setTimeout(resolve, 20));
      expect(process.kill(pid, 0)).toBe(true);
      parent.kill("SIGKILL");
      await once(parent, "exit");
    },
  );
});

test("`ps` reports when a process began", async () => {
  const found = await fromPs(process.pid);
  if (found === null) return; // The tool is not installed everywhere.
  expect(found.isOver).toBe(false);
  const began = Date.now() / 1_000 - process.uptime();
  expect(Math.abs(found.began - began)).toBeLessThan(60);
});
