/** Checks the findings of `coterie doctor` about running members, certificates and folders. */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { issue, makeAuthority } from "../../src/cluster/certificates.ts";
import type { Finding } from "../../src/cluster/finding.ts";
import { freePorts } from "../network/free-ports.ts";
import { coterie, endAll, until } from "./cluster-under-test.ts";
import { MembersUnderTest } from "./members-under-test.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-doctor-"));
const removing: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })];
afterEach(async () => {
  await endAll();
  for (const remove of removing.splice(0)) remove();
});

/** Findings about this machine, which a test cannot predict. */
const OF_THE_MACHINE = new Set(["disk", "processor", "folder"]);

const ADVICE = `coterie cert 3 --renew --out ${folder}`;

async function findings(...words: string[]) {
  const { code, stdout, stderr } = await coterie("doctor", "--json", ...words);
  const all = stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Finding);
  const of = (check: string): Finding | undefined => all.find((finding) => finding.check === check);
  return { code, stderr, all, of };
}

test("doctor finds no problem with running members, and names the one that does not run", {
  tags: ["long"],
}, async () => {
  const members = await MembersUnderTest.of(3);
  removing.push(() => members.remove());
  await members.serveAll();
  const words = ["--config", members.config, "--id", "1"];
  let others: readonly Finding[] = [];
  const well = await until(
    () => `the members agree and answer in time, but ${JSON.stringify(others)}`,
    async () => {
      const now = await findings(...words);
      others = now.all.filter(({ check }) => !OF_THE_MACHINE.has(check));
      return now.of("leader of the log") !== undefined && others.every(({ verdict }) => verdict === "ok") ? now : null;
    },
  );
  expect(well.of("members")?.found).toBe("3 members: 1 may fail");
  expect(well.of("disk")?.found).toMatch(/^fdatasync takes [\d.]+ ms, at worst [\d.]+ ms in 32 writes$/);
  expect(well.of("folder")?.found).toContain("journal-1 has ");

  const frozen = members.running.get(2);
  frozen?.signal("SIGSTOP");
  const still = await findings(...words);
  frozen?.signal("SIGCONT");
  expect(still.code).toBe(1);
  expect(still.of("cluster")).toMatchObject({
    verdict: "warning",
    found: "2 of 3 members with an admin address answer, not member 2",
  });
  expect(still.all.filter(({ check }) => check === "member 2")).toMatchObject([
    { verdict: "ok" },
    {
      verdict: "problem",
      found: expect.stringContaining("accepts connections but does not answer within 2 s") as string,
    },
  ]);

  const dead = members.running.get(3);
  dead?.signal("SIGKILL");
  await dead?.finished;
  const ill = await findings(...words);
  expect(ill).toMatchObject({ code: 1, stderr: expect.stringMatching(/^coterie: \d problem/) as string });
  expect(ill.of("member 3")).toMatchObject({
    verdict: "problem",
    found: expect.stringContaining("does not accept connections (ECONNREFUSED)") as string,
    advice: expect.stringContaining("coterie node --id 3") as string,
  });
  const { stdout } = await coterie("doctor", ...words);
  expect(stdout).toMatch(/^ok {7}members {12}3 members: 1 may fail\n/);
  expect(stdout).toMatch(/\nproblem {2}member 3 .*\n {9}→ start it: /);
});

test("doctor checks certificates, names and folders without running members", async () => {
  mkdirSync(folder, { recursive: true });
  const now = Date.now();
  const [ours, theirs] = await Promise.all([makeAuthority("ours", now), makeAuthority("theirs", now)]);
  const older = await makeAuthority("ours", now);
  const pairs = {
    1: await issue(ours, ["node-1"], 365, now),
    2: await issue(ours, ["node-2"], 10, now),
    3: await issue(theirs, ["node-3"], 365, now),
    4: await issue(ours, ["node-1"], 365, now),
  };
  writeFileSync(join(folder, "ca.pem"), older.cert + ours.cert); // As while an authority is being replaced.
  for (const [id, { cert, key }] of Object.entries(pairs)) {
    writeFileSync(join(folder, `${id}.pem`), cert);
    writeFileSync(join(folder, `${id}.key`), key);
  }
  const ports = await freePorts(4);
  const members = Object.fromEntries(ports.map((port, at) => [at + 1, `127.0.0.1:${port}`]));
  const config = join(folder, "cluster.json");
  const tls = { ca: "ca.pem", cert: "{id}.pem", key: "{id}.key" };
  writeFileSync(config, JSON.stringify({ cluster: "x", members: { ...members, 5: "nowhere.invalid:7100" }, tls }));
  writeFileSync(join(folder, "a-file"), "");
  const { code, of } = await findings("--config", config);
  expect(code).toBe(1);
  expect(of("certificate of 1")).toMatchObject({ verdict: "ok", found: "valid for 364 days" });
  expect(of("certificate of 2")).toMatchObject({ verdict: "warning", found: "it expires in 9 days" });
  expect(of("certificate of 3")).toMatchObject({
    verdict: "problem",
    found: "it was signed by another authority",
    advice: ADVICE,
  });
  expect(of("certificate of 4")).toMatchObject({ verdict: "problem", found: "it does not have the name node-4" });
  expect(of("member 5")?.found).toContain("cannot resolve nowhere.invalid");
  expect(of("cluster")?.advice).toContain("admin address");
  const unwritable = await findings("--config", config, "--id", "1", "--data", join(folder, "a-file", "inside"));
  expect(unwritable.of("folder")).toMatchObject({
    verdict: "problem",
    advice: expect.stringContaining("write") as string,
  });
});

test("doctor reports a server that accepts connections and does not answer", async () => {
  mkdirSync(folder, { recursive: true });
  const mute = createServer().listen(0, "127.0.0.1");
  await once(mute, "listening");
  const { port } = mute.address() as AddressInfo;
  const [own = 0] = await freePorts(1);
  const config = join(folder, "mute.json");
  const members = { 1: { address: `127.0.0.1:${own}`, admin: `127.0.0.1:${port}` } };
  writeFileSync(config, JSON.stringify({ cluster: "x", members }));
  const { code, all } = await findings("--config", config);
  mute.close();
  expect(code).toBe(1);
  expect(all).toContainEqual({
    check: "member 1",
    verdict: "problem",
    found: `127.0.0.1:${port} accepts connections but does not answer within 2 s`,
    advice: expect.stringContaining("restart it") as string,
  });
});

test("doctor rejects impossible arguments", async () => {
  expect(await coterie("doctor", "--config", "no-such.json")).toMatchObject({ code: 2 });
  expect(await coterie("doctor", "--config", "no-such.json", "--data", "x")).toMatchObject({
    code: 2,
    stderr: "coterie: expected --id with --data, which is the folder of that member\n",
  });
});
