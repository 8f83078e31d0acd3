/**
 * Runs four PBFT replicas as real processes under load. One of them is Byzantine, once as the primary and once as a
 * backup. The others keep deciding, their clients see a linearizable history, and the Byzantine replica is identified
 * if possible.
 *
 * A Byzantine replica that signs new messages is also a Byzantine client: it requests in its own name operations that
 * it has seen, and these are legitimate log entries. Therefore the history includes the operations that honest replicas
 * execute for it, with unknown results.
 *
 * @module-tag long
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { random } from "../../src/core/random.ts";
import { unwrapped } from "../../src/core/wrapping.ts";
import { checkLinearizability, drawText } from "../../src/history/index.ts";
import type { BehaviourName } from "../../src/protocols/byzantine.ts";
import type { NodeStatus } from "../../src/runtime/admin-pages.ts";
import { machineModel } from "../protocols/logs/machine-model.ts";
import { endAll, until } from "./cluster-under-test.ts";
import { LogClients } from "./log-clients.ts";
import { MembersUnderTest } from "./members-under-test.ts";

const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 3;
/** Member 1 is the primary of the first view. */
const PRIMARY = 1;
const BACKUP = 3;

let members: MembersUnderTest;
let clients: LogClients;
let listening: AbortController;
afterEach(async () => {
  clients?.stop();
  listening?.abort();
  await endAll();
  members?.remove();
});

const statusOf = async (id: number): Promise<NodeStatus> =>
  (await (await fetch(`${members.adminOf(id)}/status`)).json()) as NodeStatus;

/** Reads a metric of a member that has a value for each peer. */
async function byPeer(id: number, name: string): Promise<Record<number, number>> {
  const text = await (await fetch(`${members.adminOf(id)}/metrics`)).text();
  const found = text.matchAll(new RegExp(`^${name}\\{peer="(\\d+)"\\} (\\d+)$`, "gm"));
  return Object.fromEntries([...found].map(([, peer, value]) => [Number(peer), Number(value)]));
}

/**
 * Whether the behavior can add commands to the log. With other behaviors, a replica repeats messages that correct nodes
 * have signed, or sends nothing.
 */
const signs = (behaviour: BehaviourName): boolean => behaviour === "equivocate" || behaviour === "forge";

/** Adds the operations that this member executes for the Byzantine client to the history, each command once. */
async function listen(id: number, liar: number, known: Set<number>): Promise<void> {
  const trace = await fetch(`${members.adminOf(id)}/trace`, { signal: listening.signal });
  let rest = "";
  for await (const bytes of trace.body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + Buffer.from(bytes).toString()).split("\n");
    rest = lines.pop() as string;
    for (const line of lines) {
      const { kind, event } = JSON.parse(line) as { kind: string; event?: { type: string } };
      expect(kind, `member ${id}`).not.toBe("gap");
      if (event === undefined) continue;
      const { type, command } = unwrapped(event) as unknown as { type: string; command?: Executed };
      if (type !== "decided" || command?.client !== liar || known.has(command.sequence)) continue;
      known.add(command.sequence);
      clients.overhear(command.operation);
    }
  }
}
interface Executed {
  readonly client: number;
  readonly sequence: number;
  readonly operation: string;
}

/** @param deeds the number of times, a while apart, that clients must make progress */
async function beside(liar: number, behaviour: BehaviourName, deeds: number): Promise<void> {
  console.log(`member ${liar}, ${behaviour}: COTERIE_SEED=${seed}`);
  const draw = random(seed).stream(behaviour);
  members = await MembersUnderTest.of(4);
  members.rewrite({ protocol: "pbft", options: { machine: { kind: "map" } } });
  const lying = ["--byzantine", behaviour, "--seed", String(draw.below(2 ** 31))];
  for (const id of members.ids) {
    const member = members.serve(id, ...(id === liar ? lying : []));
    await until("a member runs", () => member.stdout.includes("listening"), member);
  }
  const honest = members.ids.filter((id) => id !== liar);
  // A client trusts its own replica, so clients of the Byzantine replica are excluded.
  clients = new LogClients(members, draw, honest);
  listening = new AbortController();
  const { signal } = listening;
  const known = new Set<number>();
  const broken: unknown[] = [];
  // The trace of a flood is written faster than it can be read.
  const listened = signs(behaviour) ? honest : [];
  for (const id of listened) listen(id, liar, known).catch((error: unknown) => !signal.aborted && broken.push(error));
  await clients.progress(0);
  clients.start(CLIENTS);
  for (let deed = 0; deed < deeds; deed++) {
    const { acknowledged } = clients;
    await clients.progress(acknowledged + CLIENTS);
    await sleep(100);
  }
  await clients.end();
  console.log(
    `member ${liar}, ${behaviour}: ${clients.acknowledged} operations acknowledged, ${known.size} of the liar's own`,
  );
  expect(broken).toEqual([]);
  const report = checkLinearizability(clients.history, machineModel("map"));
  const findings = report.findings.map((finding) => drawText(finding, { model: report.model }));
  expect(report.verdict, findings.join("\n")).toBe("holds");
  for (const id of honest) {
    const member = members.running.get(id);
    expect(member?.stderr, `member ${id}`).not.toMatch(/InvariantViolation|coterie: |this cannot/);
    const { peers } = await statusOf(id);
    expect(Math.max(...peers.map(({ queuedBytes }) => queuedBytes))).toBeLessThan(8 * 2 ** 20);
  }
  expect(members.running.get(liar)?.stderr).toContain(`this member is Byzantine (${behaviour}`);
  expect((await statusOf(liar)).byzantine).toBe(behaviour);
  await expectNamed(liar, behaviour, honest);
}

/**
 * Expects evidence of the Byzantine replica. Impossible signatures prove that a replica is Byzantine. Too many or
 * missing messages show in the metrics.
 */
async function expectNamed(liar: number, behaviour: BehaviourName, honest: readonly number[]): Promise<void> {
  const naming: number[] = [];
  for (const id of honest) {
    const exposed = Object.keys(await byPeer(id, "coterie_exposed_total")).map(Number);
    expect(
      exposed.filter((node) => node !== liar),
      `member ${id}`,
    ).toEqual([]);
    const isSaid = members.running
      .get(id)
      ?.stderr.includes(`node ${liar} is Byzantine: it signed contradictory statements`);
    expect(isSaid, `member ${id}`).toBe(exposed.length > 0);
    if (isSaid) naming.push(id);
    const heard = async (): Promise<{ ofLiar: number; ofOther: number }> => {
      const { [liar]: ofLiar = 0, ...ofOthers } = await byPeer(id, "coterie_messages_from_total");
      return { ofLiar, ofOther: Math.max(...Object.values(ofOthers)) };
    };
    if (behaviour === "mute") expect((await heard()).ofLiar, `member ${id}`).toBe(0);
    // The clients have ended, but a flood continues. It is detected eventually, no matter how little processor time the
    // detector gets.
    if (behaviour === "flood")
      await until(`most of what member ${id} hears is the liar's`, async () => {
        const { ofLiar, ofOther } = await heard();
        return ofLiar > 2 * ofOther;
      });
  }
  expect(naming.length > 0, `named by ${naming.join(", ")}`).toBe(signs(behaviour));
}

test("a silent primary is replaced, and the others decide", async () => {
  await beside(PRIMARY, "mute", 3);
  for (const id of [2, 3, 4])
    await until(`member ${id} is in a later view`, async () => {
      const { leader, term } = await statusOf(id);
      return leader !== PRIMARY && (term ?? 0) > 0;
    });
});

describe("under load", () => {
  const all: readonly BehaviourName[] = ["mute", "equivocate", "withhold", "forge", "replay", "flood"];
  const [primary, backup] = ["a Byzantine primary: %s", "a Byzantine backup: %s"];
  test.each(["equivocate"] as const)(primary, (behaviour) => beside(PRIMARY, behaviour, 10));
  test.each(["forge", "flood"] as const)(backup, (behaviour) => beside(BACKUP, behaviour, 10));
  test.each(all)(primary, { tags: ["larger"] }, (behaviour) => beside(PRIMARY, behaviour, 15));
  test.each(all)(backup, { tags: ["larger"] }, (behaviour) => beside(BACKUP, behaviour, 15));
});
