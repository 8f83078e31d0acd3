/** Sections `fail-over` and `stalls`: what becomes of a leadership, a lock and a place in a view while their member is away. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Timing } from "../../src/cluster/services/timing.ts";
import { Rows } from "./figures.ts";
import { type Deed, Group } from "./group.ts";
import type { Run } from "./run.ts";

const DEEDS: readonly Deed[] = ["kill", "stop", "leave"];
export const STALLS_MS: readonly number[] = [100, 200, 400, 700, 1_000, 2_000];
/** Leases are renewed a few times before something happens; at different moments of their renewal. */
const CALM_MS: readonly number[] = [300, 340, 380, 320, 360];
/** After a pause, until what it leads to has begun. */
const AFTERMATH_MS = 1_000;
/** The first grants under the new leader count as well. */
const TURNS_GO_ON_MS = 300;

const words: Readonly<Record<Deed, string>> = { kill: "SIGKILL", stop: "SIGSTOP", leave: "leave()" };

/** One member leads, holds a lock and is in the view; the others, which are given back, campaign and want the lock, too. */
async function occupied(group: Group, name: string, victim: number, round: number): Promise<readonly number[]> {
  const others = group.ids.filter((id) => id !== victim);
  const leads = group.next("a first leader", (from, { note }) => from === victim && note === "leads");
  const holds = group.next("a first holder", (from, { note }) => from === victim && note === "holds");
  await group.ask(victim, { ask: "campaign", name });
  await group.ask(victim, { ask: "want", name });
  await Promise.all([leads, holds]);
  await group.all({ ask: "campaign", name }, others);
  await group.all({ ask: "want", name }, others);
  await sleep(CALM_MS[round % CALM_MS.length]);
  return others;
}

async function freed(group: Group, name: string, ids: readonly number[]): Promise<void> {
  await group.all({ ask: "resign", name }, ids);
  await group.all({ ask: "give-back", name }, ids);
}

/** From the deed until others lead, hold the lock, and are all in a view without the member. */
async function failOver(
  group: Group,
  deed: Deed,
  round: number,
  note: (what: string, ms: number) => void,
): Promise<void> {
  const { leader } = await group.settled();
  const victim = group.ids.find((id) => id !== leader) as number;
  const name = `${deed}-${round}`;
  const others = await occupied(group, name, victim, round);
  const isOther = (from: number): boolean => from !== victim;
  const leads = group.next("the next leader", (from, it) => isOther(from) && it.note === "leads" && it.name === name);
  const holds = group.next("the next holder", (from, it) => isOther(from) && it.note === "holds" && it.name === name);
  const views = others.map((other) =>
    group.next("the next view", (from, it) => from === other && it.note === "view" && !it.members.includes(victim)),
  );
  const { atMs, over } = group.do(deed, victim);
  const [lead, lock, ...inView] = await Promise.all([leads, holds, ...views]);
  const leftMs = await over;
  await group.undo(deed, victim);
  note("leader", lead.atMs - atMs);
  note("holder of a lock", lock.atMs - atMs);
  note("member of a channel's view", Math.max(...inView.map((view) => view.atMs)) - atMs);
  if (leftMs !== null) note("the call of leave() itself", leftMs);
  await freed(group, name, deed === "stop" ? group.ids : others);
}

/** The longest that another member waits for a lock, which it takes and gives back all the time. */
async function leaderFailOver(group: Group, deed: Deed, round: number): Promise<number> {
  const leader = (await group.settled()).leader as number;
  const client = group.ids.find((id) => id !== leader) as number;
  const name = `led-${deed}-${round}`;
  await group.ask(client, { ask: "begin-turns", name });
  await sleep(CALM_MS[round % CALM_MS.length]);
  const { over } = group.do(deed, leader);
  for (;;) {
    const { leader: next } = await group.ask(client, { ask: "standing" });
    if (next !== null && next !== leader) break;
    await sleep(10);
  }
  await sleep(TURNS_GO_ON_MS);
  const { longestGapMs } = await group.ask(client, { ask: "end-turns", name });
  await over;
  await group.undo(deed, leader);
  return longestGapMs;
}

/** A new group each time: a detector that has been wrong waits longer from then on. */
export async function failOvers(timing: Timing, { rounds, progress }: Omit<Run, "ms">): Promise<Rows> {
  const rows = new Rows("fail-over");
  for (const deed of DEEDS) {
    for (let round = 0; round < rounds; round++) {
      const group = await Group.of(timing);
      progress(`fail-over, ${words[deed]}, round ${round + 1} of ${rounds}`);
      await failOver(group, deed, round, (what, ms) => rows.add(`${words[deed]}: ${what}`, "ms", ms));
      group.end();
    }
    for (let round = 0; round < rounds; round++) {
      const group = await Group.of(timing);
      progress(`fail-over of the leader of the log, ${words[deed]}, round ${round + 1} of ${rounds}`);
      rows.add(
        `${words[deed]}: leader of the log, until the next grant`,
        "ms",
        await leaderFailOver(group, deed, round),
      );
      group.end();
    }
  }
  return rows;
}

interface Survival {
  readonly leadership: boolean;
  readonly lock: boolean;
  readonly place: boolean;
}

async function survival(group: Group, victim: number, stallMs: number, round: number): Promise<Survival> {
  const { view } = await group.settled();
  const name = `stall-${round}`;
  await occupied(group, name, victim, round);
  group.do("stop", victim);
  await sleep(stallMs);
  await group.undo("stop", victim);
  await sleep(AFTERMATH_MS);
  const { leads, holds } = await group.ask(victim, { ask: "tenures", name });
  const { view: viewThen } = await group.settled();
  await freed(group, name, group.ids);
  return { leadership: leads, lock: holds, place: viewThen === view };
}

/** Both followers of the log are paused once, then a new group begins: a detector that has been wrong waits longer. */
export async function stalls(
  timing: Timing,
  stallsMs: readonly number[],
  { rounds, progress }: Omit<Run, "ms">,
): Promise<Rows> {
  const rows = new Rows(`stalls, ${timing}`);
  for (const stallMs of stallsMs) {
    let round = 0;
    while (round < rounds) {
      const group = await Group.of(timing);
      const { leader } = await group.settled();
      for (const victim of group.ids.filter((id) => id !== leader)) {
        if (round === rounds) break;
        progress(`stalls, ${timing}: ${stallMs} ms, round ${round + 1} of ${rounds}`);
        const { leadership, lock, place } = await survival(group, victim, stallMs, round);
        const add = (what: string, survives: boolean): void =>
          rows.add(`${stallMs} ms: ${what}`, "rounds that survive", survives ? 1 : 0);
        add("leadership", leadership);
        add("lock", lock);
        add("place in the view", place);
        round += 1;
      }
      group.end();
    }
  }
  for (let round = 0; round < rounds; round++) {
    const group = await Group.of(timing);
    progress(`stalls, ${timing}: crashes, round ${round + 1} of ${rounds}`);
    await failOver(group, "kill", round, (what, ms) => rows.add(`crash: ${what}`, "ms", ms));
    await group.settled();
    rows.add("crash: leader of the log, until the next grant", "ms", await leaderFailOver(group, "kill", round));
    group.end();
  }
  return rows;
}
