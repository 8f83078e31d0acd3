/** Checks the doctor's findings for given answers of members. test/e2e/doctor.test.ts uses running members. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { type HostPort, parseHostPort } from "../runtime/host-port.ts";
import type { ServiceConfig } from "./config.ts";
import { examine, type Patient } from "./doctor.ts";
import type { Finding } from "./finding.ts";

interface Said {
  readonly id: number;
  readonly members: readonly number[];
  readonly voters?: readonly number[];
  readonly leader: number | null;
  readonly hasQuorum?: boolean;
  readonly shared?: object | null;
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/**
 * Starts an admin page with these answers, one after another; the last one is repeated. Its address also serves as the
 * member's.
 */
async function page(...answers: readonly Said[]): Promise<string> {
  let asked = 0;
  const server = createServer((_request, response) => {
    const {
      id,
      members,
      voters = members,
      leader,
      hasQuorum = true,
      shared = {},
    } = answers[Math.min(asked++, answers.length - 1)] as Said;
    const peers = members.filter((peer) => peer !== id).map((peer) => ({ id: peer, address: at, suspected: false }));
    const always = { pid: 1, cluster: "x", protocol: "services", role: "joined", reachable: 1, instances: [] };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ ...always, id, peers, voters, leader, hasQuorum, shared }));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const at = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return at;
}

/** Returns the findings for these members in the config. A member may have an address besides its admin address. */
async function findings(
  pages: Readonly<Record<number, string | { readonly address: string; readonly admin: string }>>,
  more: Pick<Patient, "id"> & Partial<ServiceConfig> = { id: null },
): Promise<readonly Finding[]> {
  const members = Object.fromEntries(
    Object.entries(pages).map(([id, at]) => {
      const [address, admin] = typeof at === "string" ? [at, at] : [at.address, at.admin];
      return [id, { address: parseHostPort(address) as HostPort, admin: parseHostPort(admin) as HostPort }];
    }),
  );
  const { id, ...fields } = more;
  const config: ServiceConfig = {
    ...{ cluster: "x", members, tls: null, limits: {}, dataDir: null, timing: "default" },
    ...fields,
  };
  const all: Finding[] = [];
  for await (const finding of examine({ config, id, folder: null })) all.push(finding);
  return all;
}

const of = (all: readonly Finding[], check: string): readonly Finding[] => all.filter((each) => each.check === check);

test("counts members by the list, not by the config: voters, removed members, and members missing from the config", async () => {
  const list = { members: [1, 2, 4, 5, 6], voters: [1, 2, 4, 5] };
  const gone = "127.0.0.1:1"; // No server listens there.
  const all = await findings({
    1: await page({ id: 1, ...list, leader: 2 }),
    2: await page({ id: 2, ...list, leader: 2 }),
    3: gone,
    4: await page({ id: 4, members: [1, 2, 3, 4], leader: null }), // This member lags behind.
    5: await page({ id: 5, ...list, leader: 2 }),
  });
  expect(of(all, "members")).toMatchObject([{ verdict: "warning", found: "5 members, 4 voting: 1 may fail" }]);
  expect(of(all, "member 3")).toEqual([
    {
      check: "member 3",
      verdict: "ok",
      found: "in this config but not in the member list: it was removed, or has not been added yet",
      advice: "",
    },
  ]);
  expect(of(all, "member 6")).toMatchObject([
    { verdict: "ok", found: expect.stringContaining("accepts connections") as string },
    { verdict: "warning", found: "in the member list but not in this config" },
  ]);
  expect(of(all, "cluster")).toMatchObject([{ verdict: "ok", found: expect.stringMatching(/^4 of 4 /) as string }]);
  expect(all.filter(({ verdict }) => verdict === "problem")).toEqual([]);
});

test("uses the members of the config when none answers", async () => {
  const all = await findings({ 1: "127.0.0.1:1", 2: "127.0.0.1:1", 3: "127.0.0.1:1" });
  expect(of(all, "members")).toMatchObject([{ verdict: "ok", found: "3 members: 1 may fail" }]);
  expect(of(all, "member 3")).toMatchObject([{ verdict: "problem" }]);
});

test("checks twice for a leader of the log: then its absence is a problem, with advice", async () => {
  const electing = { members: [1, 2], leader: null };
  const elected = { ...electing, leader: 1 };
  const [soon, never] = await Promise.all([
    findings({
      1: await page({ id: 1, ...electing }, { id: 1, ...elected }),
      2: await page({ id: 2, ...electing }, { id: 2, ...elected }),
    }),
    findings({
      1: await page({ id: 1, ...electing, voters: [] }),
      2: await page({ id: 2, ...electing, voters: [] }),
    }),
  ]);
  expect(of(soon, "leader of the log")).toMatchObject([{ verdict: "ok", found: "member 1" }]);
  expect(of(never, "leader of the log")).toMatchObject([
    {
      verdict: "problem",
      found: "a majority is reachable, but no member knows who the leader is",
      advice: expect.stringContaining("empty their folders and start them without") as string,
    },
  ]);
});

test("expects no leader of members without a log", async () => {
  const all = await findings({ 1: await page({ id: 1, members: [1], leader: null, shared: null }) });
  expect(of(all, "leader of the log")).toEqual([]);
});

test("advises to examine a member without a majority if others have one, and otherwise to start members", async () => {
  const [whole, alone] = [
    { members: [1, 2], leader: 1 },
    { members: [1, 2], leader: 1, hasQuorum: false },
  ];
  const one = await findings({ 1: await page({ id: 1, ...whole }), 2: await page({ id: 2, ...alone }) });
  expect(of(one, "majority")).toMatchObject([
    {
      found: "not reachable from member 2",
      advice: expect.stringContaining("the isolated member's log") as string,
    },
  ]);
  const none = await findings({ 1: await page({ id: 1, ...alone }), 2: await page({ id: 2, ...alone }) });
  expect(of(none, "majority")).toMatchObject([{ advice: expect.stringContaining("start members") as string }]);
});

test("refers to their own machines for members with a loopback admin address elsewhere, even if another member answers", async () => {
  const admin = await page({ id: 1, members: [1, 2], leader: 1 });
  // Addresses of 203.0.113.0/24 are for documentation. No machine has them.
  const all = await findings({ 1: { address: "203.0.113.1:7100", admin }, 2: { address: "203.0.113.2:7100", admin } });
  const elsewhere = {
    check: "member 2",
    verdict: "warning",
    found: `its admin address ${admin} is a loopback address`,
    advice: "run doctor on that machine",
  };
  expect(of(all, "member 2")).toContainEqual(elsewhere);
  expect(all.filter(({ advice }) => advice.includes("restart"))).toEqual([]);
  const alone = await findings({ 2: { address: "203.0.113.2:7100", admin: "127.0.0.1:1" } });
  expect(of(alone, "member 2")).toContainEqual({ ...elsewhere, found: elsewhere.found.replace(admin, "127.0.0.1:1") });
});

test("names the member that answers at the admin address of another one", async () => {
  const admin = await page({ id: 1, members: [1, 2], leader: 1 });
  const all = await findings({ 1: admin, 2: { address: "127.0.0.1:1", admin } });
  expect(of(all, "member 2")).toContainEqual({
    check: "member 2",
    verdict: "problem",
    found: `member 1 answers at its admin address ${admin}`,
    advice: "correct the admin address in the config",
  });
});

test("does not advise to renew certificates if there is no authority", async () => {
  const file = (name: string): string => `/no-such-folder/${name}`;
  const tls = { ca: file("ca.pem"), cert: file("node-{id}.pem"), key: file("node-{id}.key") };
  const all = await findings({ 1: "127.0.0.1:1", 2: "127.0.0.1:1" }, { id: 1, tls });
  expect(of(all, "certificate of 1")).toMatchObject([
    {
      verdict: "problem",
      advice:
        "copy this member's files and ca.pem here, or create the files for all members: coterie cert 1 2 --out /no-such-folder",
    },
  ]);
});
