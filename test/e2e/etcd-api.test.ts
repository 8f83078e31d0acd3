/**
 * Runs Debian's etcdctl against three members of Coterie and against etcd itself. The output must be the same, line by
 * line.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { join, type Member } from "../../src/index.ts";
import { EngineServer, etcdServer } from "../engines/real/servers.ts";
import { authority } from "../network/certificates.ts";
import { freePorts } from "../network/free-ports.ts";
import { PATIENCE } from "../patience.ts";

const ETCDCTL = "/usr/bin/etcdctl";
const folder = mkdtempSync(path(tmpdir(), "coterie-etcd-"));
const members: Member[] = [];
let endpoints = "";
let etcd: EngineServer;
/** The revision at which the tests begin, on both sides. */
let base = 0;
/** Returns the revision of a change. @param number the number of the change, from 1 */
const revision = (number: number): string => String(base + number);

beforeAll(async () => {
  if (!existsSync(ETCDCTL)) throw new Error("not installed: apt-get install etcd-client, which .ci/run does");
  const [a, b, c, ...doors] = await freePorts(6);
  const addresses = { 1: `127.0.0.1:${a}`, 2: `127.0.0.1:${b}`, 3: `127.0.0.1:${c}` };
  const joined = [1, 2, 3].map((id, at) =>
    join({ id, members: addresses, dataDir: path(folder, "{id}"), etcd: `127.0.0.1:${doors[at]}`, timing: "patient" }),
  );
  members.push(...(await Promise.all(joined)));
  await Promise.all(members.map((member) => member.ready()));
  endpoints = members.map(({ etcd: url }) => url).join(",");
  etcd = await EngineServer.start(etcdServer);
  base = await levelled();
});

afterAll(async () => {
  await Promise.all([...members.map((member) => member.leave()), etcd?.remove()]);
  rmSync(folder, { recursive: true, force: true });
});

interface Line {
  readonly args: readonly string[];
  readonly input: string;
  /** The last output of a command that does not end by itself. The test then ends it. */
  readonly until: string | null;
}
const line = (...args: string[]): Line => ({ args, input: "", until: null });
const txn = (input: string): Line => ({ args: ["txn"], input, until: null });
const watch = (until: string, ...args: string[]): Line => ({ args: ["watch", ...args], input: "", until });

/** Returns the output of etcdctl without its log, which contains times. */
async function saidBy(at: string, { args, input, until }: Line): Promise<string> {
  const child = spawn(ETCDCTL, [`--endpoints=${at}`, ...args], { env: { ...process.env, ETCDCTL_API: "3" } });
  let said = "";
  const hear = (data: Buffer): void => {
    said += data.toString();
    if (until !== null && said.includes(until)) child.kill("SIGINT");
  };
  child.stdout.on("data", hear);
  child.stderr.on("data", hear);
  child.stdin.on("error", () => {}); // etcdctl may exit before it has read its input.
  child.stdin.end(input);
  await new Promise((resolve) => child.once("close", resolve));
  const lines = said.split("\n").filter((each) => !each.startsWith('{"level":'));
  return lines.join("\n").trimEnd();
}

/** Replaces the ids of the cluster, its members and its leases, which differ. */
const compared = (said: string): string =>
  said
    .replaceAll(/"(cluster_id|member_id|raft_term|lease)":\d+/g, '"$1":N')
    .replaceAll(/"(ClusterID|MemberID|RaftTerm|Lease)" : [1-9]\d*/g, '"$1" : N')
    .replaceAll(/\b[0-9a-f]{15,16}\b/g, "ID");

/** Brings both sides to the same revision, because members write keys of their own when they start. */
async function levelled(): Promise<number> {
  // Each member publishes its address a short time after it starts to serve.
  const list = (): Promise<string> => saidBy(endpoints, line("member", "list"));
  await vi.waitFor(async () => expect(await list()).not.toContain(", , "), PATIENCE);
  const sides = [endpoints, `http://127.0.0.1:${etcd.port}`];
  const revisionOf = async (at: string): Promise<number> =>
    Number(/"revision":(\d+)/.exec(await saidBy(at, line("get", "level", "-w", "json")))?.[1]);
  const target = Math.max(...(await Promise.all(sides.map(revisionOf)))) + 1;
  for (const at of sides) while ((await revisionOf(at)) < target) await saidBy(at, line("put", "level", ""));
  for (const at of sides) await saidBy(at, line("del", "level"));
  return target + 1;
}

async function same(lines: readonly Line[]): Promise<void> {
  for (const each of lines) {
    const [ours, theirs] = await Promise.all([saidBy(endpoints, each), saidBy(`http://127.0.0.1:${etcd.port}`, each)]);
    expect({ line: each.args, said: compared(ours) }).toEqual({ line: each.args, said: compared(theirs) });
  }
}

/** Each test continues from the revision of the previous test, on both sides. */
describe("etcdctl prints the same for Coterie and for etcd", { tags: ["long"] }, () => {
  test("put and get, with ranges and revisions", () =>
    same([
      line("put", "a", "1"),
      line("put", "b", "2"),
      line("put", "c", "3"),
      line("put", "a", "11", "--prev-kv"),
      line("get", "a"),
      line("get", "a", "c"),
      line("get", "--prefix", ""),
      line("get", "--from-key", "b"),
      line("get", "a", `--rev=${revision(1)}`),
      line("get", "a", "--rev=1000"),
      ...["--limit=2", "--order=descend", "--sort-by=modify", "--keys-only"].map((flag) =>
        line("get", "--prefix", "", flag),
      ),
      line("get", "--prefix", "", "--sort-by=version", "--order=descend"),
      line("get", "--prefix", "", "--limit=1", "-w", "fields"),
      line("get", "a", "-w", "json"),
      line("get", "nothing"),
      line("put", "x y", "ünï"),
      line("get", "x y", "--hex"),
    ]));

  test("rejected requests", () =>
    same([
      line("put", "", "1"),
      line("put", "zz", "--ignore-value"),
      line("put", "zz", "1", "--ignore-lease"),
      line("put", "a", "x", "--lease=1234"),
      line("lease", "grant", "9000000001"),
      line("lease", "revoke", "12345"),
      line("lease", "timetolive", "12345"),
      line("lease", "keep-alive", "12345", "--once"),
    ]));

  test("transactions", () =>
    same([
      txn('create("n") = "0"\n\nput n again\nget n\n\nget b\n\n'),
      txn('mod("n") > "1"\nver("b") = "1"\nval("b") < "3"\n\ndel n\nget b\n\nget b\n\n'),
      txn('val("missing") = ""\n\nput m 1\n\nput m 2\n\n'),
      txn("\n\nput m 1\nput m 2\n\n\n"),
      txn("\n\nput m 1\ndel m\n\n\n"),
      line("get", "m", "-w", "json"),
    ]));

  test("watches of past and future changes", () =>
    same([
      line("put", "a", "the last of a"),
      line("put", "c", "the last of all"),
      watch("the last of all\n", `--rev=${revision(1)}`, "--prefix", "", "--prev-kv"),
      watch('"Value" : "the last of all"\n"Lease" : 0\n', `--rev=${revision(2)}`, "b", "d", "-w", "fields"),
      watch("the last of a\n", `--rev=${revision(2)}`, "a"),
    ]));

  test("leases and locks", async () => {
    const lease = async (at: string): Promise<void> => {
      const said = await saidBy(at, line("lease", "grant", "100"));
      const [, id = ""] = /lease (\w+) granted with TTL\(100s\)/.exec(said) ?? [];
      expect(await saidBy(at, line("put", "leased", "v", `--lease=${id}`))).toBe("OK");
      expect(await saidBy(at, line("lease", "timetolive", id, "--keys"))).toMatch(
        /TTL\(100s\).*attached keys\(\[leased\]\)/,
      );
      expect(await saidBy(at, line("lease", "keep-alive", "--once", id))).toBe(`lease ${id} keepalived with TTL(100)`);
      expect(await saidBy(at, line("lease", "list"))).toBe(`found 1 leases\n${id}`);
      expect(await saidBy(at, line("lease", "revoke", id))).toBe(`lease ${id} revoked`);
      expect(await saidBy(at, line("get", "leased"))).toBe("");
    };
    await lease(endpoints);
    await lease(`http://127.0.0.1:${etcd.port}`);
    await same([line("lock", "l", "echo", "held"), line("get", "--prefix", "l/")]);
    await same([{ args: ["elect", "e", "me"], input: "", until: "me\n" }, line("get", "--prefix", "e/")]);
  });

  test("compaction and deletion", () =>
    same([
      line("compaction", revision(4)),
      line("compaction", revision(4)),
      line("compaction", "50000"),
      line("get", "b", `--rev=${revision(3)}`),
      line("get", "b", `--rev=${revision(4)}`),
      line("watch", `--rev=${revision(1)}`, "b"),
      line("del", "--prefix", "", "--prev-kv"),
      line("get", "--prefix", "", "-w", "json"),
    ]));
});

interface GatewayAnswer {
  readonly code: number;
  readonly type: string | null;
  readonly lines: readonly unknown[];
}

/** Posts a body to a JSON gateway. Reads at most this many lines of the answer, because some streams do not end. */
async function posted(at: string, path: string, body: string, lines: number): Promise<GatewayAnswer> {
  const leaving = new AbortController();
  const response = await fetch(`${at}${path}`, { method: "POST", body, signal: leaving.signal });
  let said = "";
  const decoder = new TextDecoder();
  try {
    for await (const bytes of response.body ?? []) {
      said += decoder.decode(bytes as Uint8Array, { stream: true });
      if (said.split("\n").length > lines) leaving.abort();
    }
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  }
  const parsed = said.split("\n").flatMap((line) => {
    if (line === "") return [];
    const masked = line.replaceAll(/"(cluster_id|member_id|raft_term)":"\d+"|"(ID)":"\d{15,}"/g, '"$1$2":"N"');
    return [masked.startsWith("{") ? (JSON.parse(masked) as unknown) : masked];
  });
  return { code: response.status, type: response.headers.get("content-type"), lines: parsed };
}

const key = (text: string): string => Buffer.from(text).toString("base64");
const put = { key: key("gw/a"), value: key("1") };

/** Requests with the number of lines to read of an answer that does not end. @param from the revision of the first put */
function gatewayRequests(
  from: string | undefined,
): readonly (readonly [path: string, body: unknown, lines?: number])[] {
  const all = { key: key("gw/"), range_end: key("gw0") };
  return [
    ["kv/put", { ...put, prevKv: true, unknown: 1 }],
    ["kv/put", {}],
    ["kv/put", { key: key("x"), lease: "5" }],
    ["kv/put", { key: key("gw/ü"), value: "" }],
    ["kv/range", { key: key("gw/a") }],
    ["kv/range", { ...all, sort_order: "DESCEND", sort_target: "MOD", limit: 1 }],
    ["kv/range", { ...all, countOnly: true }],
    ["kv/range", { ...all, keys_only: true, revision: from }],
    ["kv/range", { key: key("a"), revision: 1_000_000 }],
    [
      "kv/txn",
      {
        compare: [{ result: "EQUAL", target: "CREATE", key: key("gw/a"), createRevision: from }],
        success: [
          { requestPut: { key: key("gw/b"), value: key("2") } },
          { request_range: all },
          { requestDeleteRange: { key: key("none") } },
        ],
        failure: [{ request_range: all }],
      },
    ],
    ["kv/txn", { success: [{ request_put: put }, { request_put: put }] }],
    ["lease/grant", { TTL: 60, ID: "77" }],
    ["lease/grant", { TTL: "99999999999" }],
    ["lease/keepalive", '{"ID":77}{"ID":"78"}'],
    ["kv/lease/timetolive", { ID: 78 }],
    ["lease/leases", {}],
    ["lock/lock", { name: key("gw/lock"), lease: 77 }],
    ["lock/unlock", { key: key("gw/lock/4d") }],
    ["kv/lease/revoke", { ID: 77 }],
    ["lease/revoke", { ID: 77 }],
    ["watch", { create_request: { ...all, start_revision: from, prev_kv: true, filters: ["NODELETE"] } }, 2],
    [
      "watch",
      '{"create_request":{"key":"eA==","progress_notify":true}}{"progress_request":{}}{"cancel_request":{}}',
      3,
    ],
    ["election/leader", { name: key("gw") }],
    ["election/proclaim", {}],
    ["cluster/member/remove", { ID: "1" }],
    ["cluster/member/add", { peerURLs: ["not a URL"] }],
    ["auth/authenticate", { name: "a", password: "b" }],
    ["kv/deleterange", { ...all, prev_kv: true }],
    ["nope", {}],
  ];
}

test("the JSON gateway answers like etcd's", { tags: ["long"] }, async () => {
  const theirs = `http://127.0.0.1:${etcd.port}`;
  const ours = (members[0] as Member).etcd as string;
  const { lines } = await posted(ours, "/v3/kv/put", JSON.stringify(put), 9);
  await posted(theirs, "/v3/kv/put", JSON.stringify(put), 9);
  const [first] = lines as { readonly header: { readonly revision: string } }[];
  const from = first?.header.revision;
  for (const [path, given, most = 9] of gatewayRequests(from)) {
    const body = typeof given === "string" ? given : JSON.stringify(given);
    const [own, expected] = await Promise.all([ours, theirs].map((at) => posted(at, `/v3/${path}`, body, most)));
    expect({ path, given, ...own }).toEqual({ path, given, ...expected });
  }
  for (const method of ["GET", "PUT"]) {
    const [own, expected] = await Promise.all(
      [ours, theirs].map(async (at) => {
        const response = await fetch(`${at}/v3/kv/range`, { method, ...(method === "PUT" && { body: "{}" }) });
        return [response.status, await response.text()];
      }),
    );
    expect(own).toEqual(expected);
  }
});

/** Removes addresses, names and log positions, which differ. */
const withoutOwn = (said: string): string[] => {
  const masked = compared(said)
    .replaceAll(/(?:http:\/\/)?(?:127\.0\.0\.1|localhost):\d+/g, "PLACE")
    .replaceAll(/\b(started|ID, started), \w+,/g, "$1, NAME,")
    .replaceAll(/3\.4\.\d+/g, "VERSION")
    .replaceAll(/\d+(?:\.\d+)? [kM]?B\b/g, "SIZE")
    .replaceAll(/"(ID|Name|Version|Leader|DBSize|RaftIndex|RaftTerm|RaftAppliedIndex|Revision)" : .*/g, '"$1" : OWN')
    .replaceAll(/\b(?:true|false), false, \d+, \d+, \d+, ?$/gm, "LEADS, false, TERM, INDEX, INDEX,");
  return [...new Set(masked.split("\n").filter((each) => each !== ""))].sort();
};

test("the list of members and the status of each look like etcd's", {
  tags: ["long"],
}, async () => {
  const theirs = `http://127.0.0.1:${etcd.port}`;
  for (const args of [
    ["member", "list"],
    ["member", "list", "-w", "fields"],
    ["endpoint", "status", "--cluster"],
    ["endpoint", "status", "--cluster", "-w", "fields"],
  ])
    expect([args, withoutOwn(await saidBy(endpoints, line(...args)))]).toEqual([
      args,
      withoutOwn(await saidBy(theirs, line(...args))),
    ]);
  const status = (await saidBy(endpoints, line("endpoint", "status", "--cluster"))).split("\n");
  expect(status.filter((each) => each.split(", ")[4] === "true")).toHaveLength(1);
  expect(status).toHaveLength(3);
  const health = await saidBy(endpoints, line("endpoint", "health", "--cluster"));
  expect(health.match(/is healthy/g)).toHaveLength(3);
});

test("members and status are reported, and unsupported requests are named", { tags: ["long"] }, async () => {
  const list = (await saidBy(endpoints, line("member", "list"))).split("\n");
  expect(list).toEqual(list.toSorted()); // Sorted by id; all have 16 digits.
  expect(list.map((each) => each.split(", ").slice(1, 3).join(" ")).sort()).toEqual([
    "started 1",
    "started 2",
    "started 3",
  ]);
  expect(await saidBy(endpoints, line("user", "list"))).toContain(
    "code = Unimplemented desc = The server does not implement the method /etcdserverpb.Auth/UserList",
  );
});

test("a member on a network accepts etcdctl only with a certificate", { tags: ["long"] }, async () => {
  const ca = await authority("test");
  const files = (name: string) => ({
    ca: path(folder, "ca.pem"),
    cert: path(folder, `${name}.pem`),
    key: path(folder, `${name}.key`),
  });
  writeFileSync(path(folder, "ca.pem"), ca.cert);
  for (const name of ["member", "client"]) {
    const { cert, key } = await ca.issue(name, "localhost");
    writeFileSync(files(name).cert, cert);
    writeFileSync(files(name).key, key);
  }
  const [peers, port] = await freePorts(2);
  const member = await join({
    id: 1,
    members: { 1: `127.0.0.1:${peers}` },
    dataDir: path(folder, "secured"),
    etcd: { listen: `0.0.0.0:${port}`, tls: files("member") },
    timing: "patient",
  });
  try {
    expect(member.etcd).toBe(`https://127.0.0.1:${port}`); // The host at which other members reach it.
    const at = `https://localhost:${port}`;
    const { ca: cacert, cert, key } = files("client");
    const proof = [`--cacert=${cacert}`, `--cert=${cert}`, `--key=${key}`];
    expect(await saidBy(at, line(...proof, "put", "a", "1"))).toBe("OK");
    expect(await saidBy(at, line(...proof, "get", "a"))).toBe("a\n1");
    const short = "--command-timeout=2s";
    expect(await saidBy(at, line(`--cacert=${cacert}`, short, "get", "a"))).toContain("Error: ");
    expect(await saidBy(`http://localhost:${port}`, line(short, "get", "a"))).toContain("Error: ");
  } finally {
    await member.leave();
  }
});

test("maps are shared with members, and members' own keys are out of reach", { tags: ["long"] }, async () => {
  const settings = (members[0] as Member).map<number>("settings");
  const changes = settings.watch();
  expect(await saidBy(endpoints, line("put", "map/settings/limit", "10"))).toBe("OK");
  expect(await changes.next()).toMatchObject({ value: { type: "put", key: "limit", value: 10 } });
  await settings.put("size", 20);
  expect(await saidBy(endpoints, line("get", "--prefix", "map/settings/"))).toBe(
    "map/settings/limit\n10\nmap/settings/size\n20",
  );
  for (const args of [
    ["put", "coterie/x", "1"],
    ["get", "--prefix", "coterie/"],
    ["del", "coterie/x"],
    ["watch", "coterie/x"],
  ])
    expect(await saidBy(endpoints, line(...args))).toContain("etcdserver: permission denied");
});
