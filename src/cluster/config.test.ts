import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { UsageError } from "../core/errors.ts";
import { readServiceConfig } from "./config.ts";
import { parseConfig, readConfig } from "./protocol-config.ts";

const sound = { cluster: "demo", protocol: "bully", members: { 0: "127.0.0.1:7401", 1: "127.0.0.1:7402" } };

function refusal(value: unknown): string {
  try {
    parseConfig(value, "/etc/coterie");
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  return "accepted";
}

test("omitted fields have defaults", () => {
  expect(parseConfig(sound, ".")).toEqual({
    cluster: "demo",
    protocol: "bully",
    options: {},
    members: {
      0: { address: { host: "127.0.0.1", port: 7401 }, admin: { host: "127.0.0.1", port: 0 } },
      1: { address: { host: "127.0.0.1", port: 7402 }, admin: { host: "127.0.0.1", port: 0 } },
    },
    tls: null,
    limits: {},
    dataDir: null,
  });
});

test("accepts every field", () => {
  const config = {
    cluster: "wide",
    protocol: "bully",
    options: { detector: { intervalMs: 50 }, election: { maxDelayMs: 20 } },
    members: {
      3: { address: "[2001:db8::7]:7100", admin: "[::1]:7200" },
      4: { address: "db-1.example.org:7100", admin: "0.0.0.0:7200" },
    },
    tls: { ca: "ca.pem", cert: "node-{id}.pem", key: "/keys/node-{id}.key" },
    limits: { maxQueueBytes: 1_000_000 },
    dataDir: "journals/{id}",
    adminExposed: true,
  };
  const { cluster, protocol, options, limits } = config;
  expect(parseConfig(config, "/etc/coterie")).toEqual({
    cluster,
    protocol,
    options,
    limits,
    members: {
      3: { address: { host: "2001:db8::7", port: 7100 }, admin: { host: "::1", port: 7200 } },
      4: { address: { host: "db-1.example.org", port: 7100 }, admin: { host: "0.0.0.0", port: 7200 } },
    },
    dataDir: "/etc/coterie/journals/{id}",
    tls: { ca: "/etc/coterie/ca.pem", cert: "/etc/coterie/node-{id}.pem", key: "/keys/node-{id}.key" },
  });
});

describe("rejects with the path of the field", () => {
  const at = 'expected members.1.address to be host:port with a port from 1 to 65535, got "';
  test.each<[string, object | string, string]>([
    ["no object", "demo", 'expected the config to be an object, got "demo"'],
    ["no cluster", { cluster: undefined }, "expected cluster to be a name, got undefined"],
    ["an empty name", { cluster: "" }, 'expected cluster to be a name, got ""'],
    [
      "an unknown protocol",
      { protocol: "x" },
      'expected the protocol to be a name listed by `coterie protocols`, got "x"',
    ],
    ["options that are none", { options: [] }, "expected options to be an object, got []"],
    [
      "an unknown option",
      { options: { detector: { beat: 1 } } },
      "expected heartbeat.beat to be absent, got 1 (the options are intervalMs, minMisses, maxMisses, calmBeats)",
    ],
    ["no member", { members: {} }, "expected members to be 1 to 128 members, got 0"],
    ["members as a list", { members: [] }, "expected members to be an object that maps ids to addresses, got []"],
    ["an id that is none", { members: { a: "x:1" } }, 'expected a key of members to be a natural number, got "a"'],
    ["an id with a zero", { members: { "01": "x:1" } }, 'expected a key of members to be a natural number, got "01"'],
    [
      "no address",
      { members: { 1: {} } },
      "expected members.1.address to be host:port with a port from 1 to 65535, got undefined",
    ],
    ["no port", { members: { 1: { address: "foo" } } }, `${at}foo"`],
    ["port 0", { members: { 1: { address: "127.0.0.1:0" } } }, `${at}127.0.0.1:0"`],
    ["a port too far", { members: { 1: { address: "127.0.0.1:70000" } } }, `${at}127.0.0.1:70000"`],
    ["IPv6 without brackets", { members: { 1: { address: "::1:7100" } } }, `${at}::1:7100"`],
    ["half an IPv4 address", { members: { 1: { address: "10.0.0:7100" } } }, `${at}10.0.0:7100"`],
    [
      "a short form",
      { members: { 1: "foo" } },
      'expected members.1 to be host:port with a port from 1 to 65535, got "foo"',
    ],
    [
      "a number",
      { members: { 1: 7100 } },
      "expected members.1 to be host:port or an object with address, listen and admin, got 7100",
    ],
    [
      "a stray word in a member",
      { members: { 1: { address: "localhost:1", port: 7 } } },
      "expected members.1.port to be absent, got 7",
    ],
    ["half of TLS", { tls: { ca: "ca.pem", cert: "c.pem" } }, "expected tls.key to be a path, got undefined"],
    ["a misspelt off", { tls: "of" }, 'expected tls to be "off" or an object with ca, cert and key, got "of"'],
    [
      "a limit of nothing",
      { limits: { maxFrameBytes: 0 } },
      "expected limits.maxFrameBytes to be a whole number > 0, got 0",
    ],
  ])("%s", (_what, change, sentence) => {
    expect(refusal(typeof change === "string" ? change : { ...sound, ...change })).toBe(sentence);
  });

  test("an address twice", () => {
    const members = { 0: "localhost:7401", 1: { address: "127.0.0.1:7402", admin: "LOCALHOST:7401" } };
    expect(refusal({ ...sound, members })).toBe(
      'expected members.1.admin to be different from members.0.address, got "localhost:7401"',
    );
  });

  test("too many members", () => {
    const members = Object.fromEntries(Array.from({ length: 129 }, (_, id) => [id, `127.0.0.1:${7_000 + id}`]));
    expect(refusal({ ...sound, members })).toBe("expected members to be 1 to 128 members, got 129");
  });
});

test.each<[object, string]>([
  [{ member: {} }, "expected member to be absent, got {} (did you mean members?)"],
  [{ datadir: "x" }, 'expected datadir to be absent, got "x" (did you mean dataDir?)'],
  [{ limits: { maxFrameByte: 1 } }, "expected limits.maxFrameByte to be absent, got 1 (did you mean maxFrameBytes?)"],
  [{ other: 1 }, "expected other to be absent, got 1"],
])("rejects an unknown field, and suggests a similar one: %j", (change, sentence) => {
  expect(refusal({ ...sound, ...change })).toBe(sentence);
});

test("all problems are reported at once", () => {
  const members = { a: "127.0.0.1:7401", 1: "foo", 2: { address: "127.0.0.1:7402", port: 7 } };
  expect(refusal({ ...sound, members, tls: "of", member: 1, protocol: "x" })).toBe(
    "6 problems: expected member to be absent, got 1 (did you mean members?); " +
      'expected members.1 to be host:port with a port from 1 to 65535, got "foo"; ' +
      "expected members.2.port to be absent, got 7; " +
      'expected a key of members to be a natural number, got "a"; ' +
      'expected tls to be "off" or an object with ca, cert and key, got "of"; ' +
      'expected the protocol to be a name listed by `coterie protocols`, got "x"',
  );
});

describe("traffic that leaves the machine", () => {
  const far = { 0: "10.0.0.1:7100", 1: "10.0.0.2:7100" };

  test("needs TLS, or an explicit opt-out", () => {
    expect(refusal({ ...sound, members: far })).toMatch(
      /^expected tls to be set, since members\.0\.address 10\.0\.0\.1:7100 /,
    );
    expect(refusal({ ...sound, members: far, tls: "off" })).toBe("accepted");
  });

  test("includes the address that a member binds", () => {
    const members = { 0: { address: "127.0.0.1:7100", listen: "0.0.0.0:7100" } };
    expect(refusal({ ...sound, members })).toMatch(
      /^expected tls to be set, since members\.0\.listen 0\.0\.0\.0:7100 is reachable/,
    );
    expect(refusal({ ...sound, members, tls: "off" })).toBe("accepted");
    expect(refusal({ ...sound, members: { 0: { address: "127.0.0.1:7100", listen: "all" } } })).toBe(
      'expected members.0.listen to be host:port with a port from 1 to 65535, got "all"',
    );
  });

  test("excludes admin pages, unless they are exposed explicitly", () => {
    const members = { 0: { address: "127.0.0.1:7100", admin: "0.0.0.0:7200" } };
    expect(refusal({ ...sound, members })).toMatch(
      /^expected members\.0\.admin to be a loopback address, got "0\.0\.0\.0:7200"/,
    );
    expect(refusal({ ...sound, members, adminExposed: true })).toBe("accepted");
  });
});

test("names a file that is missing or not JSON", () => {
  expect(() => readConfig("no-such.json")).toThrow(
    `expected a config file at ${resolve("no-such.json")}, got none (ENOENT): write one, as docs/reference/configuration.md describes, or specify another with --config`,
  );
  expect(() => readConfig(import.meta.dirname)).toThrow(
    `expected the config to be a readable file, got "${import.meta.dirname}" (EISDIR)`,
  );
  const source = join(import.meta.dirname, "config.ts");
  expect(() => readConfig(source)).toThrow(`${source}: expected JSON: `);
});

test("a config of join() has at most as many members as a member list", () => {
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, id) => [id, `h${id}:7100`]));
  const parse = (count: number) =>
    withFile(JSON.stringify({ cluster: "demo", members: members(count), tls: "off" }), readServiceConfig);
  expect(Object.keys(parse(64).members)).toHaveLength(64);
  expect(() => parse(65)).toThrow("expected members to be 1 to 64 members, got 65");
});

test.each([
  ['{\n  "a": 1,\n}', "line 3, column 1: "],
  ['{\n  "a": 1\n  "b": 2 }', "line 3, column 3: "],
  ['{\n  "a": name }', "line 2, column 9: Unexpected token 'a'"],
  ['{ "a": [1, 2', "line 1, column 13: "],
  ["{ 'a': 1 }", "line 1, column 3: "],
])("a mistake in JSON has a line and a column: %j", (text, place) => {
  expect(() => withFile(text, readServiceConfig)).toThrow(`expected JSON: ${place}`);
});

test("members on different machines may have the same admin port on their own loopback", () => {
  const member = (host: string) => ({ address: `${host}:7100`, admin: "127.0.0.1:7200" });
  const members = { 0: member("10.0.0.1"), 1: member("10.0.0.2") };
  expect(refusal({ ...sound, members, tls: "off" })).toBe("accepted");
  const shown = (host: string) => ({ address: `${host}:7100`, admin: "0.0.0.0:7200" });
  const all = { 0: shown("10.0.0.1"), 1: shown("10.0.0.2") };
  expect(refusal({ ...sound, members: all, tls: "off", adminExposed: true })).toBe("accepted");
  const here = {
    0: { address: "127.0.0.1:7100", admin: "127.0.0.1:7200" },
    1: { address: "127.0.0.1:7101", admin: "127.0.0.1:7200" },
  };
  expect(refusal({ ...sound, members: here })).toContain("members.1.admin");
});

test("members of join() have a timing, members of a protocol have none", () => {
  const { cluster, members } = sound;
  const timingOf = (more: object): string =>
    withFile(JSON.stringify({ cluster, members, ...more }), readServiceConfig).timing;
  expect([timingOf({}), timingOf({ timing: "patient" })]).toEqual(["default", "patient"]);
  expect(() => timingOf({ timing: "slow" })).toThrow("timing to be one of fast, default, patient, got");
  expect(refusal({ ...sound, timing: "patient" })).toContain("timing");
});

/** Writes the text to a file, and returns what `read` returns for it. */
function withFile<T>(text: string, read: (file: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "coterie-config-"));
  const file = join(folder, "coterie.json");
  try {
    writeFileSync(file, text);
    return read(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
