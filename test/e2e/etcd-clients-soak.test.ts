/**
 * Runs the mutex and the election of etcd's Go client library on members of Coterie that are killed and paused one
 * after another. There must never be two holders with valid sessions, tokens must grow, no lease may end early, and
 * each kill must be followed by progress. COTERIE_SOAK=200 makes it long; COTERIE_SEED repeats its plan.
 *
 * @module-tag long
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { goMissing } from "../../bench/cluster/etcd.ts";
import { random } from "../../src/core/random.ts";
import { freePorts } from "../network/free-ports.ts";
import { type Coterie, endAll, until } from "./cluster-under-test.ts";
import { EtcdClients } from "./etcd-clients.ts";
import { MembersUnderTest } from "./members-under-test.ts";

const kills = Number(process.env.COTERIE_SOAK ?? 10);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
/** Longer than an election, and shorter than the shortest session without renewal. */
const STOPPED_MS = 3_000;
const STOPPED_EVERY = 3;

let members: MembersUnderTest;
let clients: EtcdClients | undefined;
afterEach(async () => {
  clients?.kill();
  await endAll();
  members?.remove();
});

test(`through ${kills} kills of members, mutex and election of etcd's client never have two holders`, async () => {
  expect(goMissing()).toBeNull();
  console.log(`etcd's clients: COTERIE_SOAK=${kills} COTERIE_SEED=${seed}`);
  const draw = random(seed);
  members = await MembersUnderTest.of(3);
  const doors = await freePorts(members.ids.length);
  const placeOf = (id: number): string => `127.0.0.1:${doors[id - 1]}`;
  for (const id of members.ids) members.serve(id, "--etcd", placeOf(id));
  for (const id of members.ids) await isListening(id);
  clients = await EtcdClients.start(members.folder, members.ids.map(placeOf));
  await clients.progress();
  const began = performance.now();
  let ofLeader = 0;
  try {
    for (let kill = 1; kill <= kills; kill++) {
      const leader = await leaderOfLog();
      const victim = draw.below(2) === 0 ? leader : draw.pick(members.ids);
      if (victim === leader) ofLeader += 1;
      const member = members.running.get(victim) as Coterie;
      member.signal("SIGKILL");
      await member.finished;
      await clients.progress();
      members.serve(victim, "--etcd", placeOf(victim));
      await isListening(victim);
      if (kill % STOPPED_EVERY === 0) await stopped(await leaderOfLog());
      await clients.progress();
    }
  } catch (error) {
    console.log(`etcd's clients: failed, COTERIE_SEED=${seed}\n${clients.standing}\n${members.errors}`);
    throw error;
  }
  const { wrong, ...account } = await clients.end();
  const seconds = Math.round((performance.now() - began) / 1_000);
  console.log(`etcd's clients: ${kills} kills, ${ofLeader} of the leader, in ${seconds} s: ${JSON.stringify(account)}`);
  expect(wrong).toEqual([]);
  for (const id of members.ids) expect(members.running.get(id)?.stderr).not.toContain("error");

  async function isListening(id: number): Promise<void> {
    const member = members.running.get(id) as Coterie;
    await until(`member ${id} runs`, () => member.stdout.includes("listening"), member);
  }

  /** Returns the leader according to the first member that answers. */
  function leaderOfLog(): Promise<number> {
    return until("somebody leads", async () => {
      for (const id of members.ids) {
        const status = await fetch(`${members.adminOf(id)}/status`)
          .then((response) => response.json() as Promise<{ shared: { leader: number | null } }>)
          .catch(() => null);
        if (status?.shared.leader != null) return status.shared.leader;
      }
      return null;
    });
  }

  async function stopped(id: number): Promise<void> {
    members.running.get(id)?.signal("SIGSTOP");
    await sleep(STOPPED_MS);
    members.running.get(id)?.signal("SIGCONT");
  }
});
