/** Checks `coterie verify-proof` with valid proofs, proofs that convict no player, and files that are not proofs. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { proofFile } from "../../src/cluster/proof-file.ts";
import { sign } from "../../src/core/signatures.ts";
import { commitmentShape, type Proof } from "../../src/protocols/consensus/lockstep/vocabulary.ts";
import { ed25519 } from "../../src/runtime/signatures.ts";
import { coterie } from "./run-here.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-proof-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const pairs = new Map([1, 2].map((player) => [player, generateKeyPairSync("ed25519")]));
const publicKeys = new Map([...pairs].map(([player, { publicKey }]) => [player, publicKey]));
const pem = (key: KeyObject | undefined): string => key?.export({ type: "spki", format: "pem" }) as string;
const keys = Object.fromEntries([...publicKeys].map(([player, key]) => [player, pem(key)]));
for (const [player, key] of publicKeys) writeFileSync(join(folder, `${player}.pub`), pem(key));

function commitment(by: number, hash: string) {
  const own = (pairs.get(by) as { privateKey: KeyObject }).privateKey;
  const signer = { self: by, signatures: ed25519({ own, all: publicKeys }) };
  return sign(signer, commitmentShape, { game: "chess", turn: 3, hash });
}

const both: Proof = { type: "equivocation", one: commitment(2, "a"), other: commitment(2, "b") };
function written(name: string, content: string): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}
const right = proofFile({ game: "chess", keys, proof: both });
const known = join(folder, "{id}.pub");

describe("a proof", () => {
  test("convicts, under the players' keys", async () => {
    const file = written("right.json", right);
    const { code, stdout } = await coterie("verify-proof", file, "--keys", known, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      verdict: "proved",
      culprit: 2,
      how: "equivocation",
      why: "player 2 committed to two actions in turn 3",
      game: "chess",
      keysCompared: true,
    });
    const plain = await coterie("verify-proof", file);
    expect(plain).toMatchObject({ code: 0, stderr: "" });
    expect(plain.stdout).toContain("✓ proved  player 2 committed to two actions in turn 3");
    expect(plain.stdout).toContain("checked with the keys in the file; use --keys to compare them with your own");
  });

  test("convicts no player if it is altered", async () => {
    const forged = { ...both, other: { ...both.other, by: 1 }, one: { ...both.one, by: 1 } };
    const { code, stdout } = await coterie(
      "verify-proof",
      written("forged.json", proofFile({ game: "chess", keys, proof: forged })),
      "--json",
    );
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      verdict: "not proved",
      culprit: null,
      why: "the statement is not signed by player 1",
    });
  });

  test("with keys of its writer is rejected under the players' keys", async () => {
    const own = { ...keys, 2: pem(generateKeyPairSync("ed25519").publicKey) };
    const file = written("own-keys.json", proofFile({ game: "chess", keys: own, proof: both }));
    const { code, stderr } = await coterie("verify-proof", file, "--keys", known);
    expect(code).toBe(2);
    expect(stderr).toContain("expected the key of player 2 to be the one in");
  });

  const file = JSON.parse(right) as Record<string, unknown>;
  test.each<[string, string, string]>([
    ["no JSON", "{", "expected JSON"],
    ["another format", JSON.stringify({ ...file, format: "x" }), 'expected format to be "coterie proof of cheating"'],
    ["no proof", JSON.stringify({ ...file, proof: { type: "hearsay" } }), "expected proof.type to be one of"],
    ["no keys", JSON.stringify({ ...file, keys: { a: 1 } }), "expected keys to be an object with a key for each"],
    ["an invalid key", JSON.stringify({ ...file, keys: { 2: "key" } }), "expected keys.2 to be a public key as PEM"],
  ])("is invalid: %s", async (_what, content, message) => {
    const { code, stderr } = await coterie("verify-proof", written("none.json", content));
    expect(code).toBe(2);
    expect(stderr.replaceAll(/\s+/g, " ")).toContain(message);
  });

  test("that is missing is reported as missing", async () => {
    expect(await coterie("verify-proof", "nowhere.json")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('expected the proof to be a readable file, got "nowhere.json" (ENOENT)'),
    });
  });
});
