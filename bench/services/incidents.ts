/**
 * The sections `fail-over` and `stalls`: what happens to a member's leadership, lock and view membership while the
 * member is stopped.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Timing } from "../../src/cluster/services/timing.ts";
import { progress } from "../command-line.ts";
import { Rows } from "../results.ts";
import { eventually } from "../workers.ts";
import { Group, type Incident } from "./group.ts";
import type { Notification, Tenure } from "./member.ts";

const INCIDENTS: readonly Incident[] = ["SIGKILL", "SIGSTOP", "leave()"];
const TENURES: readonly Tenure[] = ["leads", "holds"];
/**
 * Pauses before an incident. They last a few lease renewals plus different fractions of one, so that incidents occur at
 * different moments of a renewal.
 */
const CALM_MS: readonly number[] = [300, 340, 380, 320, 360];
/** How long it takes after a pause until its consequences have begun. */
const AFTERMATH_MS = 1_000;
/** Extra time for the first grants under the new leader, which are also counted. */
const MORE_TURNS_MS = 300;
const LEADER_ROW = "leader of the log, until the next grant";

type Add = (what: string, ms: number) => void;

/** Makes one member lead, hold a lock and be in the view, while the others compete with it. Returns the others. */
async function occupied(group: Group, name: string, victim: number, round: number): Promise<readonly number[]> {
  const others = group.ids.filter((id) => id !== victim);
  const had = TENURES.map((kind) =>
    group.next(`the first that ${kind}`, (from, it) => from === victim && it.is === kind),
  );
  for (const kind of TENURES) await group.call(victim, "seek", kind, name);
  await Promise.all(had);
  for (const kind of TENURES) for (const id of others) await group.call(id, "seek", kind, name);
  await sleep(CALM_MS[round % CALM_MS.length]);
  return others;
}

async function freed(group: Group, name: string, ids: readonly number[]): Promise<void> {
  for (const kind of TENURES) await Promise.all(ids.map((id) => group.call(id, "giveUp", kind, name)));
}

/**
 * Measures the time from the incident until another member leads, another holds the lock, and all the others have a
 * view without the stopped member.
 */
async function failOver(group: Group, incident: Incident, round: number, add: Add): Promise<void> {
  const { leader } = await group.settled();
  const victim = group.ids.find((id) => id !== leader) as number;
  const name = `${incident}-${round}`;
  const others = await occupied(group, name, victim, round);
  const nextThat = (kind: Tenure): Promise<Notification> =>
    group.next(`the next that ${kind}`, (from, it) => from !== victim && it.is === kind && it.name === name);
  const [leads, holds] = [nextThat("leads"), nextThat("holds")];
  const views = others.map((other) =>
    group.next("the next view", (from, it) => from === other && it.is === "view" && !it.members.includes(victim)),
  );
  const { atMs, over } = group.inflict(incident, victim);
  const [lead, lock, ...inView] = await Promise.all([leads, holds, ...views]);
  const leftMs = await over;
  await group.repair(incident, victim);
  add("leader", lead.atMs - atMs);
  add("holder of a lock", lock.atMs - atMs);
  add("member of a channel's view", Math.max(...inView.map((view) => view.atMs)) - atMs);
  if (leftMs !== null) add("the call of leave() itself", leftMs);
  await freed(group, name, incident === "SIGSTOP" ? group.ids : others);
}

/** Measures the longest time that another member waits while it continuously acquires and releases a lock. */
async function leaderFailOver(group: Group, incident: Incident, round: number): Promise<number> {
  const { leader } = await group.settled();
  const client = group.ids.find((id) => id !== leader) as number;
  await group.call(client, "beginTurns", `led-${incident}-${round}`);
  await sleep(CALM_MS[round % CALM_MS.length]);
  const { over } = group.inflict(incident, leader);
  await eventually("the next leader", async () => {
    const { leader: next } = await group.call(client, "standing");
    return next === leader ? null : next;
  });
  await sleep(MORE_TURNS_MS);
  const longestGapMs = await group.call(client, "endTurns");
  await over;
  await group.repair(incident, leader);
  return longestGapMs;
}

/**
 * Runs a measurement in a new group, because a failure detector that was once wrong uses a longer timeout from then on.
 */
async function withGroup<T>(timing: Timing, measure: (group: Group) => Promise<T>): Promise<T> {
  const group = await Group.of(timing);
  const found = await measure(group);
  group.end();
  return found;
}

export async function failOvers(rounds: number): Promise<Rows> {
  const rows = new Rows("fail-over");
  for (const incident of INCIDENTS)
    for (let round = 0; round < rounds; round++) {
      progress(`fail-over, ${incident}, round ${round + 1} of ${rounds}`);
      const add: Add = (what, ms) => rows.add(`${incident}: ${what}`, "ms", ms);
      await withGroup("default", (group) => failOver(group, incident, round, add));
      add(LEADER_ROW, await withGroup("default", (group) => leaderFailOver(group, incident, round)));
    }
  return rows;
}

/**
 * Stops a member for some time. Returns whether it is still the leader, still holds its lock, and is still in the same
 * view.
 */
async function survives(
  group: Group,
  victim: number,
  stallMs: number,
  round: number,
): Promise<Record<string, boolean>> {
  const { view } = await group.settled();
  const name = `stall-${round}`;
  await occupied(group, name, victim, round);
  group.inflict("SIGSTOP", victim);
  await sleep(stallMs);
  await group.repair("SIGSTOP", victim);
  await sleep(AFTERMATH_MS);
  const leadership = await group.call(victim, "isUnbroken", "leads", name);
  const lock = await group.call(victim, "isUnbroken", "holds", name);
  const { view: viewThen } = await group.settled();
  await freed(group, name, group.ids);
  return { leadership, lock, "place in the view": viewThen === view };
}

/** Pauses each follower of the log once, and then starts a new group. */
export async function stalls(timing: Timing, stallsMs: readonly number[], rounds: number): Promise<Rows> {
  const rows = new Rows(`stalls, ${timing}`);
  for (const stallMs of stallsMs)
    for (let round = 0; round < rounds; )
      await withGroup(timing, async (group) => {
        const { leader } = await group.settled();
        for (const victim of group.ids.filter((id) => id !== leader).slice(0, rounds - round)) {
          progress(`stalls, ${timing}: ${stallMs} ms, round ${round + 1} of ${rounds}`);
          const survived = await survives(group, victim, stallMs, round);
          for (const [what, isSo] of Object.entries(survived))
            rows.add(`${stallMs} ms: ${what}`, "survived", isSo ? 1 : 0);
          round += 1;
        }
      });
  for (let round = 0; round < rounds; round++)
    await withGroup(timing, async (group) => {
      progress(`stalls, ${timing}: crashes, round ${round + 1} of ${rounds}`);
      await failOver(group, "SIGKILL", round, (what, ms) => rows.add(`crash: ${what}`, "ms", ms));
      await group.settled();
      rows.add(`crash: ${LEADER_ROW}`, "ms", await leaderFailOver(group, "SIGKILL", round));
    });
  return rows;
}
