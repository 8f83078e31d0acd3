/**
 * Runs clients of etcd from Debian's Python packages against Coterie and against etcd: the test suite of OpenStack's
 * tooz, and scripts that use each call of etcd3gw (JSON gateway) and of python-etcd3 (gRPC). Both servers must give the
 * same results.
 *
 * @module-tag long
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { endAll } from "../e2e/cluster-under-test.ts";
import { EngineServer, etcdServer } from "../engines/real/servers.ts";
import { EtcdMembers, PYTHON, requireInstalled } from "./etcd-members.ts";

const PACKAGES = "python3-etcd3 python3-etcd3gw python3-tooz python3-fixtures python3-testtools python3-ddt";
let members: EtcdMembers;
let etcd: EngineServer;

beforeAll(async () => {
  for (const name of ["etcd3", "etcd3gw", "tooz", "fixtures", "testtools"])
    requireInstalled(`/usr/lib/python3/dist-packages/${name}`, PACKAGES);
  members = await EtcdMembers.start();
  etcd = await EngineServer.start(etcdServer);
});
afterAll(async () => {
  await Promise.all([endAll(), etcd?.remove()]);
  members?.remove();
});

/** Runs a script of this folder. Returns the lines that it prints, and the error if it fails. */
function printedBy(script: string, argument: string): Promise<string[]> {
  const file = fileURLToPath(new URL(script, import.meta.url));
  return new Promise((resolve) => {
    execFile(PYTHON, ["-W", "ignore", file, argument], (error, stdout, stderr) => {
      resolve([...stdout.trim().split("\n"), ...(error === null ? [] : [stderr])]);
    });
  });
}

const portOf = (address: string): string => address.slice(address.lastIndexOf(":") + 1);

test("the tests of tooz have the same outcomes, and none fails", async () => {
  const at = (address: string) => printedBy("tooz_suite.py", `etcd3+http://${address}?api_version=v3`);
  const ours = await at(members.addresses[1] as string);
  expect(ours.filter((line) => line.endsWith(" ok")).length).toBeGreaterThan(50);
  expect(ours.filter((line) => !/ (?:ok|skipped)$/.test(line))).toEqual([]);
  expect(ours).toEqual(await at(`127.0.0.1:${etcd.port}`));
});

test.each(["etcd3gw_calls.py", "etcd3_calls.py"])("%s prints the same", async (script) => {
  const theirs = await printedBy(script, String(etcd.port));
  expect(theirs.at(-1)).toMatch(/^delete /); // The script has come to its end.
  for (const address of members.addresses) expect(await printedBy(script, portOf(address))).toEqual(theirs);
});
