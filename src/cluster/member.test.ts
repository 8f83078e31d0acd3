import { describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../test/network/closing.ts";
import { freePorts } from "../../test/network/free-ports.ts";
import { PATIENCE } from "../../test/patience.ts";
import { createLog } from "../runtime/log.ts";
import { runMember } from "./member.ts";
import { parseConfig } from "./protocol-config.ts";

const closing = closedAfterEach();

const ranked = (rank: number): object => ({ election: { ranks: [{ node: 0, rank }] } });

async function started(file: object, id: number): Promise<{ address: string; admin: string; lines: string[] }> {
  const lines: string[] = [];
  const onFatal = (error: Error): never => {
    throw error;
  };
  const log = createLog((_level, line) => lines.push(line));
  const member = await runMember(parseConfig({ cluster: "test", protocol: "bully", ...file }, "."), id, {
    log,
    onFatal,
  });
  closing({ close: () => member.stop() });
  return { address: member.address, admin: member.admin, lines };
}

describe("members", () => {
  test("with different options of the protocol refuse each other: they would call elections forever", async () => {
    const [zero, one] = (await freePorts(2)) as [number, number];
    const members = { 0: `127.0.0.1:${zero}`, 1: `127.0.0.1:${one}` };
    const { lines: first } = await started({ members, options: ranked(1) }, 0);
    const { lines: second } = await started({ members, options: ranked(2) }, 1);
    const refusal = /\(wrong-protocol\): expected the same protocol, version and options/;
    await vi.waitFor(() => {
      for (const lines of [first, second]) expect(lines).toContainEqual(expect.stringMatching(refusal));
    }, PATIENCE);
  });

  test("with a journal need a folder for it", async () => {
    const [port] = (await freePorts(1)) as [number];
    await expect(started({ members: { 0: `127.0.0.1:${port}` }, protocol: "paxos" }, 0)).rejects.toThrow(
      "expected a directory for the journal of paxos, because the journal must outlive the process: pass dataDir to host(), or set --data DIR",
    );
  });

  test.each([
    ["127.0.0.1", true],
    ["0.0.0.0", false],
  ])("with admin pages at %s serve commands and the trace there: %j", async (host, isServed) => {
    const [port] = (await freePorts(1)) as [number];
    const members = { 0: { address: `127.0.0.1:${port}`, admin: `${host}:0` } };
    const { admin } = await started({ members, adminExposed: true }, 0);
    const ask = async (page: string, options: RequestInit = {}): Promise<number> => {
      const { status, body } = await fetch(new URL(page, admin.replace("0.0.0.0", "127.0.0.1")), options);
      await body?.cancel();
      return status;
    };
    const headers = { "content-type": "application/json" };
    expect(await ask("/status")).toBe(200);
    expect(await ask("/command", { method: "POST", headers, body: '{"type":"election","body":{"type":"call"}}' })).toBe(
      isServed ? 200 : 404,
    );
    expect(await ask("/trace")).toBe(isServed ? 200 : 404);
  });

  test("print an IPv6 address in brackets", async ({ skip }) => {
    const [port] = (await freePorts(1)) as [number];
    const starting = started({ members: { 0: `[::1]:${port}` } }, 0);
    const { address } = await starting.catch(() => skip("this machine has no IPv6"));
    expect(address).toBe(`[::1]:${port}`);
  });
});
