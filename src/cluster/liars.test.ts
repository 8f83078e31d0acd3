/**
 * Runs Byzantine members among honest ones, over TCP: every algorithm of the registry with every behavior. An honest
 * member must never fail, must keep answering, and must not buffer more than its limits.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { closedAfterEach } from "../../test/network/closing.ts";
import { freePorts } from "../../test/network/free-ports.ts";
import { seededRandom } from "../../test/network/seed.ts";
import { type BehaviourName, behaviours } from "../protocols/byzantine.ts";
import { protocolNamed, protocolNames } from "../protocols/index.ts";
import type { NodeStatus } from "../runtime/admin-pages.ts";
import { createLog } from "../runtime/log.ts";
import { makeKeys, needsKeys } from "../runtime/member-keys.ts";
import { commandNamed, offeredCommands } from "./local/offered-commands.ts";
import { runMember } from "./member.ts";
import { parseConfig } from "./protocol-config.ts";

const closing = closedAfterEach();
const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

const IDS = [0, 1, 2, 3];
const MAX_QUEUE_BYTES = 2 ** 20;
const keys = { own: join(folder, "{id}.key"), all: join(folder, "{id}.pub") };
makeKeys(keys, IDS);
let cluster = 0;

interface Honest {
  readonly id: number;
  readonly admin: string;
  readonly lines: string[];
}

const ROUNDS = 10;

/** Runs four members, one of them Byzantine. In each round, gives each a command of every kind that it offers. */
async function beside(protocol: string, behaviour: BehaviourName, liar: number): Promise<void> {
  const ports = await freePorts(IDS.length);
  cluster += 1;
  const config = parseConfig(
    {
      cluster: `liars ${cluster}`,
      protocol,
      members: Object.fromEntries(IDS.map((id) => [id, `127.0.0.1:${ports[id]}`])),
      limits: { maxQueueBytes: MAX_QUEUE_BYTES },
      dataDir: join(folder, `${cluster}-{id}`),
      ...(needsKeys(protocolNamed(protocol).node()) ? { keys } : {}),
    },
    ".",
  );
  const failures: string[] = [];
  const honest: Honest[] = [];
  const members = await Promise.all(
    IDS.map((id) => {
      const lines: string[] = [];
      const liars = id === liar ? { liar: { behaviour, seed: seededRandom().bits() } } : {};
      const member = runMember(config, id, {
        log: createLog((_level, line) => lines.push(line)),
        onFatal: (error) => failures.push(`member ${id}: ${error.message}`),
        ...liars,
      });
      return member.then(({ admin, stop }) => {
        closing({ close: stop });
        if (id !== liar) honest.push({ id, admin, lines });
        return { id, admin };
      });
    }),
  );
  let taken = 0;
  for (let round = 0; round < ROUNDS || taken === 0; round++) {
    for (const { admin } of members) {
      const { commands } = (await (await fetch(`${admin}/status`)).json()) as NodeStatus;
      for (const name of offeredCommands(commands)) {
        const command = commandNamed(commands, name, taken);
        if ((await post(`${admin}/command`, command)).ok) taken += 1;
      }
    }
    await sleep(20); // Let messages arrive between rounds.
  }
  expect(failures).toEqual([]);
  for (const { id, admin, lines } of honest) {
    const status = (await (await fetch(`${admin}/status`)).json()) as NodeStatus;
    expect(status.id).toBe(id);
    const queued = status.peers.map(({ queuedBytes }) => queuedBytes);
    expect(Math.max(...queued)).toBeLessThanOrEqual(MAX_QUEUE_BYTES);
    expect(lines.length, lines.join("\n")).toBeLessThan(20);
  }
}

const post = (url: string, body: object): Promise<Response> =>
  fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

describe("a Byzantine member never makes another member fail", () => {
  test.each([
    ["raft", "equivocate"],
    ["epoch-bully", "adversary"],
    ["isis", "flood"],
  ] as const)("%s, %s", (protocol, behaviour) => beside(protocol, behaviour, 3));

  // Whether every member relays each forged message, which then reaches the forger again. The endless traffic would
  // leave members no time for a test.
  const isStorm = (protocol: string, behaviour: string): boolean =>
    protocol === "reliable-multicast" && ["forge", "adversary"].includes(behaviour);
  const all = protocolNames
    .flatMap((protocol) => behaviours.map((behaviour) => [protocol, behaviour] as const))
    .filter(([protocol, behaviour]) => !isStorm(protocol, behaviour));
  // The first node leads or coordinates in many protocols, and the last one in others. In simulated runs, either can be
  // Byzantine in each combination.
  const liars = all.map(([protocol, behaviour], at) => [protocol, behaviour, at % 2 === 0 ? 0 : 3] as const);
  // Selects every protocol with one behavior, and every behavior with several protocols.
  const isOfDiagonal = (protocol: string, behaviour: (typeof behaviours)[number]): boolean =>
    (protocolNames.indexOf(protocol) + 1) % behaviours.length === behaviours.indexOf(behaviour);
  const [diagonal, others] = [true, false].map((isIn) =>
    liars.filter(([protocol, behaviour]) => isOfDiagonal(protocol, behaviour) === isIn),
  ) as [typeof liars, typeof liars];
  const title = "at length: %s, %s by node %i";
  test.each(diagonal)(title, { tags: ["long"] }, beside);
  test.each(others)(title, { tags: ["larger"] }, beside);
});

test("names its behavior in its log and in its status", async () => {
  const [port] = (await freePorts(1)) as [number];
  const config = parseConfig({ cluster: "liars", protocol: "bully", members: { 5: `127.0.0.1:${port}` } }, ".");
  const lines: string[] = [];
  const member = await runMember(config, 5, {
    log: createLog((_level, line) => lines.push(line)),
    onFatal: () => {},
    liar: { behaviour: "forge", seed: 7 },
  });
  closing({ close: () => member.stop() });
  expect(lines).toEqual([
    "this member is Byzantine (forge: replaces each message with one made of values that it has seen), seed 7",
  ]);
  expect(await (await fetch(`${member.admin}/status`)).json()).toMatchObject({ id: 5, byzantine: "forge" });
});
