/** Checks authorities, and the certificates that they sign, in TLS. */
import { execFileSync, spawnSync } from "node:child_process";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { expect, test } from "vitest";
import { hostsIn, issue, makeAuthority, type Pair } from "./certificates.ts";

const now = Date.now();
const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

/**
 * Creates two authorities with the same name, which exist while an authority is being replaced. Also creates
 * certificates signed by each, and one bundle of both authorities, like the output of `cat a.pem b.pem`.
 */
async function twoOfOneName() {
  const authorities = [await makeAuthority("coterie", now), await makeAuthority("coterie", now)] as const;
  const pairs = [await issue(authorities[0], ["node-1"], 1, now), await issue(authorities[1], ["node-1"], 1, now)];
  return {
    pairs,
    bundles: [authorities, authorities.toReversed()].map((both) => both.map(({ cert }) => cert).join("")),
  };
}

/** Resolves with whether a connection succeeds. Both sides present a certificate and require one from the other. */
async function isTaken(ca: string, server: Pair, client: Pair): Promise<boolean> {
  const served = createServer({ ...server, ca, requestCert: true, rejectUnauthorized: true });
  await once(served.listen(0, "127.0.0.1"), "listening");
  const { port } = served.address() as AddressInfo;
  const accepted = once(served, "secureConnection").then(() => true);
  const socket = connect({ ...client, ca, port, host: "127.0.0.1", servername: "node-1" });
  const failed = new Promise<boolean>((resolve) => {
    socket.on("error", () => resolve(false));
    served.on("tlsClientError", () => resolve(false));
  });
  const isGood = await Promise.race([accepted, failed]);
  socket.destroy();
  served.close();
  return isGood;
}

test("trusts two authorities of one name at once, in either order", async () => {
  const { pairs, bundles } = await twoOfOneName();
  for (const bundle of bundles)
    for (const server of pairs) for (const client of pairs) expect(await isTaken(bundle, server, client)).toBe(true);
});

test.skipIf(!hasOpenssl)("openssl accepts such a bundle", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coterie-bundle-"));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const { pairs, bundles } = await twoOfOneName();
  try {
    for (const bundle of bundles)
      for (const { cert } of pairs)
        expect(
          execFileSync("openssl", ["verify", "-CAfile", file("ca.pem", bundle), file("own.pem", cert)], {
            encoding: "utf8",
          }),
        ).toContain("own.pem: OK");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("certificates end with a newline, so that files can be concatenated", async () => {
  const authority = await makeAuthority("coterie", now);
  const member = await issue(authority, ["node-1"], 1, now);
  for (const text of [authority.cert, authority.key, member.cert, member.key]) expect(text).toMatch(/-----\n$/);
});

test("an authority may have any name, and signs for names and addresses that can be read back", async () => {
  const authority = await makeAuthority("stock, of two shops", now);
  expect(new X509Certificate(authority.cert).subject).toBe("CN=stock\\, of two shops");
  const names = ["node-1", "localhost", "*.example.org", "10.0.0.1", "::1", "2001:db8::7"];
  const { cert } = await issue(authority, names, 1, now);
  const found = new X509Certificate(cert);
  expect(found.checkIssued(new X509Certificate(authority.cert))).toBe(true);
  expect(found.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  expect(await hostsIn(cert, "node-1")).toEqual(names.slice(1));
});

test("rejects an authority whose key cannot sign", async () => {
  const { cert } = await makeAuthority("coterie", now);
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2_048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  await expect(issue({ cert, key: privateKey }, ["node-1"], 1, now)).rejects.toMatchObject({
    code: "wrong-authority",
    message: "expected the authority's key to use one of the curves P-256, P-384, P-521, got rsa",
  });
});
