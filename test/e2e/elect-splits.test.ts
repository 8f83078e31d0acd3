/**
 * `coterie elect` on real processes, while leaders are killed and the network splits. COTERIE_SOAK=100 makes the kills of leaders as
 * many; COTERIE_SEED repeats a run. What elections do in a split is also tried in virtual time: test/testing/swarm.test.ts.
 *
 * @module-tag long
 */
import { afterEach, describe, expect, test } from "vitest";
import { random } from "../../src/core/random.ts";
import { type Coterie, endAll, isAlive, until } from "./cluster-under-test.ts";
import { disorder, MembersUnderTest, monotonicMs } from "./members-under-test.ts";

let members: MembersUnderTest;
afterEach(async () => {
  await endAll();
  members?.remove();
});

const kills = Number(process.env.COTERIE_SOAK ?? 6);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

test(`exactly one of five commands runs at a time, through ${kills} kills and pauses of the leader`, async () => {
  console.log(`elect: COTERIE_SOAK=${kills} COTERIE_SEED=${seed}`);
  const draw = random(seed);
  members = await MembersUnderTest.of(5);
  for (const id of members.ids) members.start(id, "elect job");
  await members.successor();
  const tookMs = new Map<string, number[]>();
  for (let killed = 0; killed < kills; ) {
    const leader = members.latest;
    const victim = members.running.get(leader.member) as Coterie;
    const signal = draw.pick(["SIGKILL", "SIGKILL", "SIGKILL", "SIGSTOP"] as const);
    const rest = (await othersUp(leader.member)) >= 3 ? "a majority" : "too few";
    const from = monotonicMs();
    victim.signal(signal);
    const next = await members.successor(leader.token);
    if (next.startedAt > from) {
      killed += 1; // Otherwise it did not lead any more.
      const what = `${signal}, with ${rest} of the members left`;
      tookMs.set(what, [...(tookMs.get(what) ?? []), next.startedAt - from]);
    }
    expect(isAlive(leader.pid), `the command of member ${leader.member} is dead`).toBe(false);
    if (signal === "SIGSTOP") victim.signal("SIGCONT");
    else {
      await victim.finished;
      members.start(leader.member, "elect job");
    }
  }
  const { sightings } = members;
  for (const [what, all] of tookMs) {
    const sorted = all.sort((a, b) => a - b).map(Math.round);
    console.log(`elect: ${sorted.length} leaders met ${what}; the next command began after`);
    console.log(`elect: ${sorted[sorted.length >> 1]} ms in the middle, ${sorted.at(-1)} ms at worst`);
  }
  expect(sightings.filter(({ what }) => what === "begin").length).toBeGreaterThan(kills);
  expect(disorder(sightings)).toEqual([]);
});

/** How many members but this one can be reached: those that were killed are starting again. */
async function othersUp(but: number): Promise<number> {
  const others = members.ids.filter((id) => id !== but).map((id) => fetch(`${members.adminOf(id)}/status`));
  return (await Promise.allSettled(others)).filter(({ status }) => status === "fulfilled").length;
}

describe("when the network splits", () => {
  const minority = [4, 5];
  const majority = [1, 2, 3];

  /** Five members, whoever leads first, and then a partition. */
  async function split(words: string): Promise<void> {
    members = await MembersUnderTest.patient(5); // Who leads a side goes on to lead it.
    for (const id of members.ids) members.start(id, `${words} --fault-injector`);
    await members.successor();
    await members.partition(minority, majority);
  }

  test("there is one leader, on the side of the majority", async () => {
    await split("elect job");
    const leads = () => members.sightings.filter(({ what, pid }) => what === "begin" && isAlive(pid));
    await until(
      () => `a command runs in the majority only, but ${members.errors}`,
      () => leads().length === 1 && majority.includes(leads()[0]?.member ?? 0),
    );
    await members.partition();
    expect(disorder(members.sightings)).toEqual([]);
  });
});
