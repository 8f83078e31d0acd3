/** Checks `coterie cert`: it writes the files that members need, and never overwrites existing ones by accident. */
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { coterie } from "./run-here.ts";

const DAY_MS = 86_400_000;
let folder = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coterie-cert-"));
  const { code, stderr } = await coterie(
    "cert",
    "1",
    "2",
    "--out",
    folder,
    "--days",
    "30",
    "--host",
    "db2",
    "10.0.0.2",
  );
  expect(code, stderr).toBe(0);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string): string => readFileSync(join(folder, name), "utf8");
const certificate = (name: string): X509Certificate => new X509Certificate(file(name));

describe("certificates of members", () => {
  it("are signed by the authority and carry the name of the member, and the requested names", () => {
    const [authority, member] = [certificate("ca.pem"), certificate("node-2.pem")];
    expect(authority.ca).toBe(true);
    expect(member.ca).toBe(false);
    expect(member.verify(authority.publicKey)).toBe(true);
    expect(member.subjectAltName).toBe("DNS:node-2, DNS:db2, IP Address:10.0.0.2");
  });

  it("are valid from now on for the requested time, also for a clock that is behind", () => {
    const { validFrom, validTo } = certificate("node-1.pem");
    expect(Date.parse(validFrom)).toBeLessThan(Date.now());
    expect(Math.round((Date.parse(validTo) - Date.now()) / DAY_MS)).toBe(30);
  });

  it("have keys that only their owner can read", () => {
    expect(readdirSync(folder).sort()).toEqual([
      "ca.key",
      "ca.pem",
      "node-1.key",
      "node-1.pem",
      "node-2.key",
      "node-2.pem",
    ]);
    for (const name of ["ca.key", "node-1.key"]) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });

  it("are made for another member with the existing authority", async () => {
    const before = file("ca.pem");
    const { code, stdout } = await coterie("cert", "3", "--out", folder, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ authority: { isNew: false }, members: [{ id: 3 }] });
    expect(file("ca.pem")).toBe(before);
    expect(certificate("node-3.pem").verify(certificate("ca.pem").publicKey)).toBe(true);
  });

  it("are replaced only with the option", async () => {
    const before = file("node-1.pem");
    const refused = await coterie("cert", "4", "1", "--out", folder);
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    expect(refused.stderr).toContain("expected the certificate of member 1 to be absent, or --renew to replace it");
    expect(readdirSync(folder)).not.toContain("node-4.pem");
    expect((await coterie("cert", "1", "--out", folder, "--renew")).code).toBe(0);
    expect(file("node-1.pem")).not.toBe(before);
  });

  it("keep their names when they are renewed, unless others are given", async () => {
    const other = mkdtempSync(join(folder, "kept-"));
    const make = (...words: string[]) => coterie("cert", ...words, "--out", other);
    const namesOf = (id: number) =>
      new X509Certificate(readFileSync(join(other, `node-${id}.pem`))).subjectAltName ?? "none";
    expect((await make("1", "--host", "localhost", "127.0.0.1", "::1")).code).toBe(0);
    expect((await make("2", "--host", "db2")).code).toBe(0);
    expect((await make("3")).code).toBe(0);
    const before = [1, 2, 3].map(namesOf);
    const { code, stdout } = await make("1", "2", "3", "4", "--renew");
    expect(code).toBe(0);
    expect([1, 2, 3].map(namesOf)).toEqual(before);
    expect(namesOf(4)).toBe("DNS:node-4");
    expect(stdout.split("\n").slice(0, 4)).toEqual([
      expect.stringMatching(/node-1\.key: valid until [\d-]+, for localhost, 127\.0\.0\.1, ::1 as before$/),
      expect.stringMatching(/node-2\.key: valid until [\d-]+, for db2 as before$/),
      expect.stringMatching(/node-3\.key: valid until [\d-]+$/),
      expect.stringMatching(/node-4\.key: valid until [\d-]+$/),
    ]);
    const json = await make("1", "--renew", "--json", "--host", "db1");
    expect(JSON.parse(json.stdout)).toMatchObject({ members: [{ id: 1, hosts: ["db1"] }] });
    expect(namesOf(1)).toBe("DNS:node-1, DNS:db1");
    expect(JSON.parse((await make("2", "--renew", "--json")).stdout)).toMatchObject({ members: [{ hosts: ["db2"] }] });
    rmSync(other, { recursive: true });
  });

  it("are not renewed by another authority", async () => {
    const other = mkdtempSync(join(folder, "elsewhere-"));
    const { code, stderr } = await coterie("cert", "1", "--out", other, "--renew");
    expect(code).toBe(2);
    expect(stderr).toContain("for --renew, got neither: choose the folder that contains them");
    expect(readdirSync(other)).toEqual([]);
    rmSync(other, { recursive: true });
  });

  it("are not renewed with unreadable names", async () => {
    const other = mkdtempSync(join(folder, "unreadable-"));
    expect((await coterie("cert", "1", "--out", other)).code).toBe(0);
    writeFileSync(join(other, "node-1.pem"), "no certificate");
    const { code, stderr } = await coterie("cert", "1", "--out", other, "--renew");
    expect(code).toBe(2);
    expect(stderr).toContain(`node-1.pem to be a certificate whose names can be kept: pass the names with --host`);
    expect(readFileSync(join(other, "node-1.pem"), "utf8")).toBe("no certificate");
    expect((await coterie("cert", "1", "--out", other, "--renew", "--host", "db1")).code).toBe(0);
    rmSync(other, { recursive: true });
  });

  it("are made for clients by name, next to the members' certificates", async () => {
    const other = mkdtempSync(join(folder, "clients-"));
    const make = (...words: string[]) => coterie("cert", ...words, "--out", other);
    const { code, stdout } = await make("1", "--client", "worker-7", "dashboards", "--host", "db1", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      members: [{ id: 1 }],
      clients: [{ name: "worker-7", cert: join(other, "worker-7.pem") }, { name: "dashboards" }],
    });
    const worker = new X509Certificate(readFileSync(join(other, "worker-7.pem")));
    expect(worker.subjectAltName).toBe("DNS:worker-7");
    expect(worker.verify(new X509Certificate(readFileSync(join(other, "ca.pem"))).publicKey)).toBe(true);
    expect(worker.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]); // A client's certificate cannot be used by a server.
    expect(statSync(join(other, "worker-7.key")).mode & 0o777).toBe(0o600);
    expect((await make("--client", "worker-7")).code).toBe(2);
    expect((await make("--client", "worker-7", "--renew")).code).toBe(0);
    for (const wrong of ["node-1", "ca", "../worker", "a b", ""]) {
      const { code: refused, stderr } = await make("--client", wrong);
      expect({ refused, stderr }).toEqual({
        refused: 2,
        stderr: expect.stringContaining("expected --client to be names of clients, such as worker-7, got") as string,
      });
    }
    const nobody = await make();
    expect(nobody.code).toBe(2);
    expect(nobody.stderr).toContain("expected member ids, or --client");
    rmSync(other, { recursive: true });
  });

  it("name hosts and addresses, and all hosts of a domain, and nothing else", async () => {
    const other = mkdtempSync(join(folder, "hosts-"));
    const make = (...hosts: string[]) => coterie("cert", "1", "--out", other, "--host", ...hosts);
    for (const wrong of ["bad host", "https://db1", "10.0.0.1:7300", "1.2.3", "*", ""]) {
      const { code, stdout, stderr } = await make("db1", wrong);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain(
        `expected --host to be DNS names and IP addresses, such as db1.example.org or 10.0.0.1, got ${JSON.stringify(wrong)}`,
      );
    }
    expect(readdirSync(other)).toEqual([]);
    expect((await make("localhost", "::1", "*.example.org")).code).toBe(0);
    expect(new X509Certificate(readFileSync(join(other, "node-1.pem"))).subjectAltName).toBe(
      "DNS:node-1, DNS:localhost, IP Address:0:0:0:0:0:0:0:1, DNS:*.example.org",
    );
    rmSync(other, { recursive: true });
  });

  it("are rejected if half of the authority is missing, or for an invalid id", async () => {
    const other = mkdtempSync(join(folder, "other-"));
    expect((await coterie("cert", "1", "--out", other)).code).toBe(0);
    rmSync(join(other, "ca.key"));
    const { code, stderr } = await coterie("cert", "2", "--out", other);
    expect([code, readdirSync(other).includes("node-2.pem")]).toEqual([2, false]);
    expect(stderr).toContain("or neither, got only one of them");
    expect((await coterie("cert", "two", "--out", other)).code).toBe(2);
    rmSync(other, { recursive: true });
  });
});
