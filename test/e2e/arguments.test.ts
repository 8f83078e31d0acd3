/**
 * Checks that a command with invalid arguments, ports or config exits with a nonzero code, usually 2, and one sentence
 * on stderr.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { coterie } from "../commands/run-here.ts";
import { freePortWith } from "../network/free-ports.ts";
import { ClusterUnderTest, endAll, occupyPort } from "./cluster-under-test.ts";

afterEach(endAll);

const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

const refused = (...args: string[]): Promise<string> => failed(2, ...args);

async function failed(expected: number, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await coterie(...args);
  expect({ code, stdout }, stderr).toEqual({ code: expected, stdout: "" });
  expect(stderr).toMatch(/^coterie: [^\n]+\n$/);
  return stderr.slice("coterie: ".length, -1);
}

const noConfig = (file: string): string =>
  `expected a config file at ${resolve(file)}, got none (ENOENT): write one, as docs/reference/configuration.md describes, or specify another with --config`;

test.each([
  ["upp", "unknown command 'upp' (Did you mean up?)"],
  ["up --nodez 3", "unknown option '--nodez' (Did you mean --nodes?)"],
  ["up there", "too many arguments for 'up'. Expected 0 arguments but got 1."],
  ["up --nodes", "option '--nodes <n>' argument missing"],
  ["up --nodes 0", 'expected --nodes to be a whole number from 1 to 64, got "0"'],
  ["up --nodes 65", 'expected --nodes to be a whole number from 1 to 64, got "65"'],
  ["up --nodes -3", 'expected --nodes to be a whole number from 1 to 64, got "-3"'],
  ["up --nodes 2.5", 'expected --nodes to be a whole number from 1 to 64, got "2.5"'],
  ["up --port 99999", 'expected --port to be 0 or a port up to 65535, got "99999"'],
  ["up --port 65535", "expected --port to be at most 65430 for 5 members, got 65535"],
  ["up --port http", 'expected --port to be 0 or a port up to 65535, got "http"'],
  [
    "up --protocol paxxos",
    'expected the protocol to be a name listed by `coterie protocols`, got "paxxos" (did you mean paxos?)',
  ],
  ["up --name=", 'expected --name to be a name, got ""'],
  ["node", "required option '--config <file>' not specified"],
  ["node --config x.json", "required option '--id <n>' not specified"],
  ["node --config x.json --id x", 'expected --id to be a member\'s id, got "x"'],
  ["node --config no-such.json --id 1", noConfig("no-such.json")],
  ["status --config no-such.json", noConfig("no-such.json")],
  ["status --admin 7400", 'expected --admin to be a URL such as http://127.0.0.1:7400, got "7400"'],
  ["status --admin https://x", 'expected --admin to be a URL such as http://127.0.0.1:7400, got "https://x"'],
  ["status --admin http://127.0.0.1:7400 --config x", "expected --admin or --config, got both"],
])("coterie %s", async (words, sentence) => {
  expect(await refused(...words.split(" "))).toBe(sentence);
});

describe("a port in use: exit code 1, since it may become free soon", () => {
  test("of `up` itself, of a member and of its admin pages", async () => {
    const bases = [0, -2, -102];
    const needed = bases.flatMap((base) => [0, 1, 2, 3, 101, 102, 103].map((offset) => base + offset));
    const port = await freePortWith(needed.filter((offset) => offset !== 0));
    const { release } = await occupyPort(port);
    for (const base of bases.map((offset) => port + offset)) {
      expect(await failed(1, "up", "--nodes", "3", "--port", String(base))).toBe(
        `port ${port} is taken, and 3 members need ports ${base} to ${base + 103}: ` +
          "stop the program that listens there, or choose other ports with --port (0: any free ports)",
      );
    }
    release();
  });

  test("of `up`, by another `up`", async () => {
    const first = await ClusterUnderTest.up("--nodes", "1");
    const { port } = new URL(first.ready.admin);
    expect(await failed(1, "up", "--nodes", "1", "--port", port)).toContain(`port ${port} is taken`);
  });

  test("of the laboratory", async () => {
    const { port, release } = await occupyPort();
    expect(await failed(1, "studio", "--port", String(port))).toBe(
      `port ${port} is taken: choose another with --port (0: any free port)`,
    );
    release();
  });

  test("of a member alone", async () => {
    const { port, release } = await occupyPort();
    const file = config({ members: { 0: `127.0.0.1:${port}` } });
    expect(await failed(1, "node", "--config", file, "--id", "0")).toContain(
      `cannot listen on 127.0.0.1:${port}: the address is in use`,
    );
    release();
  });
});

test.each([
  ["203.0.113.1", "this machine has no address 203.0.113.1: set listen, or check the member's id"],
  ["no-such-host.invalid", "no-such-host.invalid"],
])("an address that this machine does not have, %s: exit code 1", async (host, words) => {
  const file = config({ tls: "off", members: { 0: `${host}:7401` } });
  expect(await failed(1, "node", "--config", file, "--id", "0")).toContain(words);
});

test.each([
  ["a certificate that is not there", tls("none.pem"), "cannot read"],
  ["a certificate that is a folder", tls("."), "cannot read"],
])("%s", async (_what, fields, words) => {
  expect(await refused("node", "--config", config(fields), "--id", "0")).toContain(words);
});

test("a config error names the file and the field", async () => {
  const file = config({ members: { 0: "127.0.0.1:7401", 2: { address: "foo" } } });
  expect(await refused("node", "--config", file, "--id", "0")).toBe(
    `${file}: expected members.2.address to be host:port with a port from 1 to 65535, got "foo"`,
  );
});

test("an id that is not in the config", async () => {
  const file = config({ members: { 0: "127.0.0.1:7401", 2: "127.0.0.1:7402" } });
  expect(await refused("node", "--config", file, "--id", "1")).toBe(
    `expected --id to be one of the members 0, 2 in ${file}, got 1`,
  );
});

test("a cluster that is not running: exit code 1, and a hint", async () => {
  const { port, release } = await occupyPort();
  release();
  const { code, stderr } = await coterie("status", "--admin", `http://127.0.0.1:${port}`);
  expect(code).toBe(1);
  expect(stderr).toBe(
    `coterie: no cluster answers at http://127.0.0.1:${port}: start one with \`coterie up\`, or specify another with --admin\n`,
  );
});

test.each([
  ["--help"],
  ["help"],
  ["help", "up"],
  ["up", "--help"],
  ["node", "--help"],
  ["status", "--help"],
  ["lock", "--help"],
  ["elect", "--help"],
  [],
])("coterie %s %s shows an example", async (...words) => {
  const { code, stdout, stderr } = await coterie(...words);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("Examples:\n  $ ");
});

test("coterie --version", async () => {
  expect((await coterie("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

function tls(file: string): object {
  return { members: { 0: "127.0.0.1:7401" }, tls: { ca: file, cert: file, key: file } };
}

function config(fields: object): string {
  const file = join(folder, "cluster.json");
  writeFileSync(file, JSON.stringify({ cluster: "demo", protocol: "bully", ...fields }));
  return file;
}
