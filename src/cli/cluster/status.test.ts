import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { coterie } from "../../../test/commands/run-here.ts";
import type { ServicesStatus } from "../../cluster/services-survey.ts";
import { textOf } from "../output.ts";
import { servicesStatusReport } from "./status.ts";

const textFor = (status: ServicesStatus): string =>
  stripVTControlCharacters(textOf(servicesStatusReport(status).sections));

test("prints grants and channels in separate tables", () => {
  const common = { holder: null, token: null, waiting: 0 };
  const address = "127.0.0.1:7101";
  const picture = textFor({
    cluster: "test",
    protocol: "services",
    nodes: [{ id: 1, pid: 11, alive: true, leader: 1, hasQuorum: true, address, admin: null, refusals: [] }],
    instances: [
      { ...common, kind: "channel", name: "new" },
      {
        ...common,
        kind: "channel",
        name: "room",
        waiting: 3,
        channel: { view: 4, members: [1, 2] },
      },
      { ...common, kind: "mutex", name: "invoice", holder: 1, token: 7 },
    ],
  });
  expect(picture).toBe(`\
NODE  PID  STATE    LEADER  MAJORITY
1     11   running  1       yes

KIND  NAME     HOLDER  TOKEN  WAITING
lock  invoice  1       7      0

CHANNEL  VIEW  MEMBERS  WAITING
new      -     -        0
room     4     1, 2     3
`);
});

test("lists pairs of members without a link, with the reason", () => {
  const address = "127.0.0.1:7101";
  const detail = "node 3 has a new journal, but this node remembers another";
  const refused = { node: 3, reason: "lost-journal", detail, members: "1, 2, 3" } as const;
  const picture = textFor({
    cluster: "test",
    protocol: "services",
    nodes: [{ id: 1, pid: 11, alive: true, leader: 1, hasQuorum: true, address, admin: null, refusals: [refused] }],
    instances: [],
  });
  expect(picture).toBe(`\
NODE  PID  STATE    LEADER  MAJORITY
1     11   running  1       yes

node 1 has no link with node 3: lost-journal: node 3 has a new journal, but this node remembers another
`);
});

test.each([undefined, "bully"])(
  "names members whose admin pages only their own machines reach (protocol: %s)",
  async (protocol) => {
    const folder = mkdtempSync(join(tmpdir(), "coterie-status-"));
    const config = join(folder, "cluster.json");
    // Addresses in 203.0.113.0/24 are reserved for documentation. No machine has them.
    const member = (id: number) => ({ address: `203.0.113.${id}:7100`, admin: "127.0.0.1:1" });
    writeFileSync(
      config,
      JSON.stringify({ cluster: "x", protocol, tls: "off", members: { 1: member(1), 2: member(2) } }),
    );
    try {
      expect(await coterie("status", "--config", config)).toMatchObject({
        code: 1,
        stderr:
          "coterie: no member answers: members 1 and 2 have their admin addresses on the loopback of their own machines: run status there\n",
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
