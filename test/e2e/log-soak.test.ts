/**
 * Runs replicated logs on real processes. Clients write and read through every member while members are killed, paused
 * and cut off. The history must be linearizable, so no acknowledged write is lost. COTERIE_SOAK=200 makes it long;
 * COTERIE_SEED repeats its plan.
 *
 * @module-tag long
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { type Random, random } from "../../src/core/random.ts";
import { checkLinearizability, drawText, type Report } from "../../src/history/index.ts";
import { machineModel } from "../protocols/logs/machine-model.ts";
import { type Coterie, endAll, until } from "./cluster-under-test.ts";
import { LogClients } from "./log-clients.ts";
import { MembersUnderTest } from "./members-under-test.ts";

const rounds = Number(process.env.COTERIE_SOAK ?? 10);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 5;
/** How long a fault lasts: about a heartbeat, or several elections. */
const LASTS_MS = [30, 900] as const;
const ROUNDS_WITH_SAME_KEYS = 10;
const SAYS_EVERY_ROUNDS = 20;

let members: MembersUnderTest;
let clients: LogClients;
/** The longest start so far of members that start together, on a machine with other load. */
let longestStartMs: number;
afterEach(async () => {
  clients?.stop();
  await endAll();
  members?.remove();
});

const deeds = [
  "kill",
  "kill the leader",
  "kill all",
  "pause",
  "pause the leader",
  "cut off",
  "cut the leader off",
] as const;
type Deed = (typeof deeds)[number];

describe.each(["raft", "multi-paxos"])("%s", (protocol) => {
  test.each([3, 5])(`%d members, through ${rounds} kills, pauses and cuts`, async (count) => {
    console.log(`${protocol}, ${count} members: COTERIE_SOAK=${rounds} COTERIE_SEED=${seed}`);
    const draw = random(seed).stream(`${protocol} ${count}`);
    members = await MembersUnderTest.of(count);
    members.rewrite({ protocol, options: { machine: { kind: "map", snapshotEvery: 25 }, client: { retryMs: 300 } } });
    longestStartMs = 0;
    await started(members.ids);
    clients = new LogClients(members, draw.stream("clients"));
    await clients.progress(0);
    clients.start(CLIENTS);

    const done = new Map<Deed, number>();
    const waits: { deed: Deed; ms: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      const deed = draw.pick(deeds);
      done.set(deed, (done.get(deed) ?? 0) + 1);
      await strike(deed, draw);
      const { acknowledged } = clients;
      const from = performance.now();
      await clients.progress(acknowledged);
      waits.push({ deed, ms: Math.round(performance.now() - from) });
      if ((round + 1) % ROUNDS_WITH_SAME_KEYS === 0) clients.renewKeys();
      if ((round + 1) % SAYS_EVERY_ROUNDS === 0)
        console.log(`${protocol}, ${count} members: ${round + 1} rounds, ${clients.acknowledged} acknowledged`);
    }
    await clients.end();
    const report = checkLinearizability(clients.history, machineModel("map"));
    waits.sort((a, b) => a.ms - b.ms);
    console.log(`${protocol}, ${count} members: ${[...done].map(([deed, times]) => `${times} × ${deed}`).join(", ")}`);
    console.log(
      `${protocol}, ${count} members: ${clients.acknowledged} of ${report.operations} operations acknowledged`,
    );
    console.log(
      `${protocol}, ${count} members: the next after a repair within ${waits[rounds >> 1]?.ms} ms in the middle, at worst ${waits
        .slice(-3)
        .map(({ deed, ms }) => `${ms} ms after “${deed}”`)
        .join(", ")}; members ran within ${longestStartMs.toFixed(0)} ms`,
    );
    expect(report.verdict, pictures(report)).toBe("holds");
  });
});

const pictures = ({ findings, model }: Report): string =>
  findings.flatMap((finding) => (finding.verdict === "holds" ? [] : [drawText(finding, { model })])).join("\n\n");

/** Causes one fault, and repairs it. */
async function strike(deed: Deed, draw: Random): Promise<void> {
  const lasts = draw.between(...LASTS_MS);
  const victim = deed.includes("leader")
    ? ((await clients.leader()) ?? draw.pick(members.ids))
    : draw.pick(members.ids);
  const process = members.running.get(victim);
  switch (deed) {
    case "kill":
    case "kill the leader":
      return restarted([victim], lasts);
    case "kill all":
      return restarted(members.ids, lasts);
    case "pause":
    case "pause the leader":
      process?.signal("SIGSTOP");
      await sleep(lasts);
      process?.signal("SIGCONT");
      return;
    case "cut off":
    case "cut the leader off": {
      const others = members.ids.filter((id) => id !== victim);
      const companions = others.slice(0, draw.below((members.ids.length - 1) >> 1));
      await members.partition(
        [victim, ...companions],
        others.filter((id) => !companions.includes(id)),
      );
      await sleep(lasts);
      return members.partition();
    }
  }
}

async function restarted(ids: readonly number[], afterMs: number): Promise<void> {
  const ended = ids.flatMap((id) => members.running.get(id) ?? []);
  for (const member of ended) member.signal("SIGKILL");
  await Promise.all(ended.map(({ finished }) => finished));
  await sleep(afterMs);
  await started(ids);
}

async function started(ids: readonly number[]): Promise<void> {
  const from = performance.now();
  for (const id of ids) members.serve(id, "--fault-injector");
  for (const id of ids)
    await until(
      () => `member ${id} runs, but ${members.running.get(id)?.standing}`,
      () => isListening(id),
      undefined,
    );
  longestStartMs = Math.max(longestStartMs, performance.now() - from);
}

/** Returns whether the member listens. A different process may have taken its port and may free it again. */
async function isListening(id: number): Promise<boolean> {
  const member = members.running.get(id) as Coterie;
  if (member.stderr.includes("the address is in use")) {
    await member.finished;
    members.serve(id, "--fault-injector");
  }
  return member.stdout.includes("listening");
}
