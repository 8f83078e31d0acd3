/** Checks `coterie status`: its output and exit codes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, expect, test } from "vitest";
import { servicesStatusReport } from "../../src/cli/cluster/status.ts";
import { textOf } from "../../src/cli/output.ts";
import { join } from "../../src/index.ts";
import { freePorts } from "../network/free-ports.ts";
import { coterie } from "./run-here.ts";

const folder = mkdtempSync(path(tmpdir(), "coterie-status-"));
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a server that answers `/status` with this, and returns its address. */
async function answering(status: object): Promise<string> {
  const server = createServer((_request, response) => void response.end(JSON.stringify(status)));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function configOf(content: object): string {
  const file = path(folder, "cluster.json");
  writeFileSync(file, JSON.stringify(content));
  return file;
}

test("one of three members of join() knows no leader, because it reaches no majority", async () => {
  const ports = await freePorts(6);
  const place = (at: number): string => `127.0.0.1:${ports[at]}`;
  const members = { 1: place(1), 2: place(2), 3: place(3) };
  const admin = place(0);
  const member = await join({ id: 1, cluster: "alone", members, admin, log: console, dataDir: path(folder, "data") });
  const entries = {
    1: { address: place(1), admin },
    2: { address: place(2), admin: place(4) },
    3: { address: place(3), admin: place(5) },
  };
  try {
    const ended = await coterie("status", "--config", configOf({ cluster: "alone", members: entries }));
    expect(ended).toMatchObject({
      code: 1,
      stderr: "coterie: member 1 does not know of a leader: member 1 cannot reach a majority\n",
    });
    expect(ended.stdout).toMatch(/^1 +\d+ +running +- +no$/m);
  } finally {
    await member.leave();
  }
});

test("members of a protocol with a leader are expected to know it", async () => {
  const of = { pid: 1, cluster: "two", protocol: "bully", term: null, role: "idle", commands: {} };
  const status = async (view: object) => {
    const places = await Promise.all([0, 1].map((id) => answering({ ...of, id, leader: null, view })));
    const members = Object.fromEntries(places.map((admin, id) => [id, { address: `127.0.0.1:${8_000 + id}`, admin }]));
    return coterie("status", "--config", configOf({ cluster: "two", protocol: "bully", members }));
  };
  expect(await status({ role: "idle", leader: null })).toMatchObject({
    code: 1,
    stderr: "coterie: members 0 and 1 do not know of a leader\n",
  });
  expect(await status({ role: "idle" })).toMatchObject({ code: 0, stderr: "" });
});

test("the tables in its help match its output", () => {
  const node = (id: number) => {
    const address = `127.0.0.1:${7_100 + id}`;
    return { id, pid: 4_710 + id, alive: true, leader: 1, hasQuorum: true, address, admin: null, refusals: [] };
  };
  const common = { holder: 1 } as const;
  const picture = stripVTControlCharacters(
    textOf(
      servicesStatusReport({
        cluster: "demo",
        protocol: "services",
        nodes: [1, 2, 3].map(node),
        instances: [
          { ...common, kind: "election", name: "nightly-report", token: 5, waiting: 0 },
          { ...common, kind: "mutex", name: "nightly-backup", token: 6, waiting: 2 },
          {
            ...{ kind: "channel", name: "room", holder: null, token: null },
            ...{ waiting: 0, channel: { view: 1, members: [1, 2, 3] } },
          },
        ],
      }).sections,
    ),
  );
  const page = readFileSync(new URL("../../docs/reference/commands.md", import.meta.url), "utf8");
  expect(page).toContain(`$ npx coterie status --config cluster.json\n${picture}`);
});
