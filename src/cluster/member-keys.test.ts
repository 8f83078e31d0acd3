import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { protocolNamed } from "../protocols/index.ts";
import { makeKeys, needsKeys, readKeys } from "../runtime/member-keys.ts";
import { parseConfig } from "./protocol-config.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-keys-"));
const files = { own: join(folder, "{id}", "signing.key"), all: join(folder, "{id}.pub") };
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("each member signs with its own key, and the others verify", () => {
  makeKeys(files, [1, 2]);
  const [one, two] = [readKeys(files, 1, [1, 2]), readKeys(files, 2, [1, 2])];
  expect(two.isSigned(1, "text", one.sign("text"))).toBe(true);
  expect(one.isSigned(1, "text", two.sign("text"))).toBe(false);
});

test("makes a key once, readable by its owner only", () => {
  makeKeys(files, [1]);
  const signature = readKeys(files, 1, [1]).sign("text");
  makeKeys(files, [1, 2]);
  expect(readKeys(files, 2, [1, 2]).isSigned(1, "text", signature)).toBe(true);
  expect(statSync(join(folder, "1", "signing.key")).mode & 0o777).toBe(0o600);
});

test("names a key that cannot be used", () => {
  makeKeys(files, [1, 2]);
  const missing = join(folder, "3.pub");
  expect(() => readKeys(files, 1, [1, 2, 3])).toThrow(
    `expected the public key of member 3 to be a PEM file, got "${missing}" (ENOENT)`,
  );
  const rsa = generateKeyPairSync("rsa", { modulusLength: 1_024 }).publicKey;
  writeFileSync(missing, rsa.export({ type: "spki", format: "pem" }));
  expect(() => readKeys(files, 1, [1, 2, 3])).toThrow(`expected the key in ${missing} to be an Ed25519 key, got "rsa"`);
  expect(() => readKeys({ own: join(folder, "2", "signing.key"), all: files.all }, 1, [1, 2])).toThrow(
    "to be the private key of member 1",
  );
});

test("the shapes of a protocol's messages show whether it signs", () => {
  expect(needsKeys(protocolNamed("raft").node())).toBe(false);
  expect(needsKeys(protocolNamed("byzantine-generals").node())).toBe(false);
  expect(needsKeys(protocolNamed("byzantine-generals").variants.signed?.model() as never)).toBe(true);
});

test("a config names the keys, relative to its folder", () => {
  const sound = { cluster: "demo", protocol: "bully", members: { 0: "127.0.0.1:7401" } };
  const keys = { own: "keys/{id}.key", all: "/etc/keys/{id}.pub" };
  expect(parseConfig({ ...sound, keys }, "/etc/coterie").keys).toEqual({
    own: "/etc/coterie/keys/{id}.key",
    all: "/etc/keys/{id}.pub",
  });
  expect(() => parseConfig({ ...sound, keys: { own: "a" } }, ".")).toThrow("expected keys.all to be a path");
});
