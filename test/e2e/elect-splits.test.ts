/**
 * Runs `coterie elect` on real processes while leaders are killed and the network splits. COTERIE_SOAK=100 sets the
 * number of killed leaders; COTERIE_SEED repeats a run. test/testing/swarm.test.ts also tests elections during a
 * partition, in virtual time.
 *
 * @module-tag long
 */
import { afterEach, expect, test } from "vitest";
import { random } from "../../src/core/random.ts";
import { type Coterie, endAll, isAlive, until } from "./cluster-under-test.ts";
import { disorder, MembersUnderTest } from "./members-under-test.ts";

let members: MembersUnderTest;
const clients = new Map<number, Coterie>();
afterEach(async () => {
  await endAll();
  members?.remove();
  clients.clear();
});

const kills = Number(process.env.COTERIE_SOAK ?? 6);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

/** Starts a client with a command at each member. */
async function candidates(count: number, ...words: string[]): Promise<void> {
  members = await MembersUnderTest.patient(count);
  await members.serveClients(members.ids, ...words);
  for (const id of members.ids) clients.set(id, members.start(id, "elect job"));
  await members.successor();
}

test(`exactly one of three commands runs at a time, through ${kills} kills and pauses of the leader`, {}, async () => {
  console.log(`elect: COTERIE_SOAK=${kills} COTERIE_SEED=${seed}`);
  const draw = random(seed);
  await candidates(3);
  for (let killed = 0; killed < kills; killed += 1) {
    const leader = members.latest;
    const victim = clients.get(leader.member) as Coterie;
    const signal = draw.pick(["SIGKILL", "SIGKILL", "SIGKILL", "SIGSTOP"] as const);
    victim.signal(signal);
    await members.successor(leader.token);
    expect(isAlive(leader.pid), `the command of client ${leader.member} is dead`).toBe(false);
    if (signal === "SIGSTOP") victim.signal("SIGCONT");
    else {
      await victim.finished;
      clients.set(leader.member, members.start(leader.member, "elect job"));
    }
  }
  const { sightings } = members;
  expect(sightings.filter(({ what }) => what === "begin").length).toBeGreaterThan(kills);
  expect(disorder(sightings)).toEqual([]);
});

test("one command runs when the network splits", async () => {
  await candidates(5, "--fault-injector");
  await members.partition([4, 5], [1, 2, 3]);
  await until(
    () => `one command runs, but ${members.errors}`,
    () => members.sightings.filter(({ what, pid }) => what === "begin" && isAlive(pid)).length === 1,
  );
  await members.partition();
  expect(disorder(members.sightings)).toEqual([]);
});
